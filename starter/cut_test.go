package starter

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// cutter passes everything on, until armed: then the network of all connections that exist is cut (nothing passes, nothing is
// closed) when some connection's transaction has locked a row and is about to copy it to outbox_failed.
type cutter struct {
	armed atomic.Bool
	mu    sync.Mutex
	gen   int // connections of an older generation are cut
}

func (c *cutter) cut(gen int) bool { c.mu.Lock(); defer c.mu.Unlock(); return gen < c.gen }

func (c *cutter) serve(t *testing.T, target string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", target)
			if err != nil {
				a.Close()
				continue
			}
			t.Cleanup(func() { a.Close(); b.Close() })
			c.mu.Lock()
			gen := c.gen
			c.mu.Unlock()
			go func() { // client to server
				buf := make([]byte, 1<<20)
				for {
					n, err := a.Read(buf)
					if err != nil {
						if !c.cut(gen) {
							b.Close()
						}
						return
					}
					if c.cut(gen) {
						continue
					}
					if bytes.Contains(buf[:n], []byte("INSERT INTO outbox_failed")) && c.armed.CompareAndSwap(true, false) {
						c.mu.Lock()
						c.gen++
						c.mu.Unlock()
						continue
					}
					b.Write(buf[:n])
				}
			}()
			go func() {
				buf := make([]byte, 1<<20)
				for {
					n, err := b.Read(buf)
					if n > 0 && !c.cut(gen) {
						a.Write(buf[:n])
					}
					if err != nil {
						if !c.cut(gen) {
							a.Close()
						}
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestACutInTheMiddleOfAMoveLeavesNoLocks: the server knows nothing of the client's end, and has the row locked. (A delete is
// one statement, which the server ends by itself.)
func TestACutInTheMiddleOfAMoveLeavesNoLocks(t *testing.T) { // scenarios 5, 37
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		cfg, err := mysql.ParseDSN(s.DSN)
		if err != nil {
			t.Fatal(err)
		}
		c := &cutter{}
		c.armed.Store(true)
		cfg.Net, cfg.Addr = "tcp", c.serve(t, cfg.Addr)
		q := quick()
		q.callTimeout = time.Second
		rec := newRecorder()
		rec.answer = func(_ context.Context, row *outbox.Row, _ int) (o Outcome) {
			if row.MessageID == "key:00007" {
				o = Outcome{Class: Reused, Reason: "another payload"}
			}
			return o
		}
		relay := startRelayAt(t, s, cfg.FormatDSN(), rec, q, nil)
		enqueue(t, s, messages("key", 50)...)
		relay.conds.await(t, CondDatabase, true)
		relay.conds.await(t, CondDatabase, false)
		producer := testdb.Conn(t, s.DB, "SET innodb_lock_wait_timeout = 5")
		if _, err := outbox.Enqueue(t.Context(), producer, message("key:00007")); err != nil {
			var duplicate *outbox.DuplicateError
			if !errors.As(err, &duplicate) {
				t.Errorf("a producer that enqueues a key again: %v", err)
			}
		}
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		if got := failedRows(t, s); got["key:00007"] != outbox.ReasonIDReused {
			t.Errorf("failed: %v", got)
		}
	})
}
