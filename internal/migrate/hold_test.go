package migrate

import (
	"bytes"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// hold stops the first of several processes at a statement.
type hold struct {
	statement string
	at        place
	taken     atomic.Bool
	reached   chan int      // gets the number of the process that was stopped
	pass      chan struct{} // closed to let the statement go on to the server
}

type place int

const (
	beforeServer place = iota // the statement does not reach the server
	onServer                  // it does when it is let pass; it is the server that must not go on then
	afterServer               // the server's answer does not reach the process
)

func newHold(statement string, at place) *hold {
	return &hold{statement: statement, at: at, reached: make(chan int, 1), pass: make(chan struct{})}
}

// await returns the number of the process that was stopped.
func (h *hold) await(t *testing.T) int {
	t.Helper()
	select {
	case number := <-h.reached:
		return number
	case <-time.After(40 * time.Second):
		t.Fatalf("no process has come to %s", h.statement)
		return 0
	}
}

// through returns a DSN that leads to the server through a proxy of the process with this number.
func (h *hold) through(t *testing.T, s *testdb.Schema, number int) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, l)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			server, err := net.Dial("tcp", s.Server.Addr())
			if err != nil {
				client.Close()
				continue
			}
			link := &link{hold: h, process: number, client: client, server: server}
			go link.up()
			go link.down()
		}
	}()
	return strings.Replace(s.DSN, s.Server.Addr(), l.Addr().String(), 1)
}

// link is one connection of a process. It ends at the server when it ends at the process.
type link struct {
	hold           *hold
	process        int
	client, server net.Conn
	mute           atomic.Bool
}

func (l *link) up() {
	defer l.server.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		mine := bytes.Contains(buf[:n], []byte(l.hold.statement)) && l.hold.taken.CompareAndSwap(false, true)
		if mine && l.hold.at == beforeServer {
			l.hold.reached <- l.process
			continue // until the process is killed
		}
		if mine && l.hold.at == onServer {
			l.hold.reached <- l.process
			<-l.hold.pass
		}
		l.mute.Store(mine && l.hold.at == afterServer)
		if _, err := l.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *link) down() {
	defer l.client.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		if l.mute.Load() {
			select {
			case l.hold.reached <- l.process:
			default: // the rest of the same answer
			}
			continue
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
