// Package testnet gives tests a TCP proxy that fails as a network does.
//
// Its job: pass connections on, and stop to, without closing them or by closing them. It is not its job to know what is
// spoken on them.
package testnet

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Mode is what a Proxy does with connections.
type Mode int

const (
	// Pass them on.
	Pass Mode = iota
	// Silent takes connections, keeps them open, and passes nothing on, not even their end. What is sent meanwhile arrives
	// once they pass again, as TCP has it: a stream never has a gap.
	Silent
	// Refuse closes all there are, and each that comes.
	Refuse
)

// Proxy listens on a port of its own until the end of the test.
type Proxy struct {
	listener net.Listener
	target   func() string

	mu     sync.Mutex
	heard  *sync.Cond // the mode is not Silent any more
	mode   Mode
	halve  int // see HalveAnswer
	halved chan struct{}
	open   []net.Conn
}

// New returns a proxy that passes connections on to target, asked for each.
func New(t testing.TB, target func() string) *Proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target}
	p.heard = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.Set(Refuse)
	})
	go p.accept(t.Context())
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the mode, of connections that are open as well.
func (p *Proxy) Set(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	p.heard.Broadcast()
	if m == Refuse {
		p.closeAll()
	}
}

func (p *Proxy) closeAll() {
	for _, c := range p.open {
		_ = c.Close() // it may have ended by itself
	}
	p.open = nil
}

// HalveAnswer lets half of the next piece of at least size bytes from the target pass, and nothing more on its connection,
// which stays open. The channel returned is closed then.
func (p *Proxy) HalveAnswer(size int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halve, p.halved = size, make(chan struct{})
	return p.halved
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.connect(ctx, client)
	}
}

func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	p.mu.Lock()
	refused := p.mode == Refuse
	p.mu.Unlock()
	if refused {
		_ = client.Close() // nothing was sent on it
		return
	}
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target())
	if err != nil {
		_ = client.Close() // nothing was sent on it
		return
	}
	p.mu.Lock()
	p.open = append(p.open, client, server)
	p.mu.Unlock()
	var cut atomic.Bool
	go p.pipe(server, client, &cut, false)
	go p.pipe(client, server, &cut, true)
}

// pipe passes on what from sends. cut is the connection's own: nothing passes any more.
func (p *Proxy) pipe(to, from net.Conn, cut *atomic.Bool, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if answers && p.halves(n) {
			cut.Store(true)
			_, _ = to.Write(buf[:n/2]) // an end of the connection shows at the next read
			continue
		}
		p.waitHeard()
		if n > 0 && !cut.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !cut.Load() {
				_ = to.Close() // it may have ended by itself
			}
			return
		}
	}
}

func (p *Proxy) waitHeard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == Silent {
		p.heard.Wait()
	}
}

func (p *Proxy) halves(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halve == 0 || n < p.halve {
		return false
	}
	p.halve = 0
	close(p.halved)
	return true
}
