package e2e

import (
	"io"
	"net"
	"sync"
)

// proxy passes TCP connections on.
type proxy struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		p.running.Go(func() { pass(in, out) })
		p.running.Go(func() { pass(out, in) })
	}
}

// pass ends both sides when either ends.
func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from) // how a connection ends is its two ends' affair
	from.Close()
	to.Close()
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
