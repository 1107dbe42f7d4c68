package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A relay that is killed in the middle of its work leaves nothing behind that the next one does not finish, and repeats
// nothing.
func TestRelayKilledMidway(t *testing.T) {
	t.Parallel() // it waits, most of the time
	const n = 500
	w := one(t)
	w.must("migrate")
	ids := w.enqueue(n)
	// One start at a time, so that there is a middle to be killed in.
	relay := w.start("oncepost", "relay", "--max-starts", "1")
	until(t, "some rows are started and deleted", func() bool { return w.waiting() < n-50 })
	relay.kill()
	left := w.waiting()
	t.Logf("killed with %d of %d rows left", left, n)
	if left == 0 {
		t.Fatal("the relay was done before it was killed: this tests nothing")
	}
	w.start("oncepost", "relay").await("relay running")
	w.onceEach(ids)
}

// Scenario 6: one of two relays is stopped while messages flow. It ends within its grace period, the other one takes its
// shards, and every message is started once.
func TestRelayHandsOver(t *testing.T) {
	t.Parallel() // it waits, most of the time
	const before, after = 150, 150
	w := one(t)
	w.must("migrate")
	first := w.start("oncepost", "relay")
	first.await("relay owns shards")
	second := w.start("oncepost", "relay")
	second.await("relay owns shards") // it has its part of them

	var ids []string
	for range before {
		ids = append(ids, w.enqueue(1)...)
	}
	stopped := make(chan struct{})
	go func() { // messages go on flowing while the relay stops
		defer close(stopped)
		first.stop(syscall.SIGTERM)
	}()
	for range after {
		ids = append(ids, w.enqueue(1)...)
	}
	<-stopped
	second.await("count=32")
	ids = append(ids, w.enqueue(1)...)
	w.onceEach(ids)
	second.stop(syscall.SIGTERM)
}

// Scenario 4: while Temporal cannot be reached the rows wait, and none is failed; when it can be, all start.
func TestRowsWaitForTemporal(t *testing.T) {
	t.Parallel() // it waits, most of the time
	const n = 200
	w := one(t)
	w.must("migrate")
	ids := w.enqueue(n)
	door := newDoor(t)
	w.env = append(w.env, "TEMPORAL_ADDRESS="+door.addr) // of two, the last one counts
	relay := w.start("oncepost", "relay")
	relay.await("condition=temporal_away active=true")
	if waiting, failed := w.waiting(), w.failed(); waiting != n || failed != 0 {
		t.Errorf("with Temporal away %d of %d rows wait and %d have failed", waiting, n, failed)
	}
	door.open(shared.server(t).FrontendAddr())
	relay.await("condition=temporal_away active=false")
	w.onceEach(ids)
	relay.stop(syscall.SIGTERM)
}

// A relay with a worker, and a worker alone, that are started before their namespace stay, say so, and serve once it is there.
func TestNamespaceComesLater(t *testing.T) {
	t.Parallel() // it waits, most of the time
	for _, args := range [][]string{{"relay", "--with-worker"}, {"worker"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			w := one(t)
			w.must("migrate")
			later := w.schema.Name + "-later"
			w.env = append(w.env, "TEMPORAL_NAMESPACE="+later)
			w.enqueue(1)
			p := w.start("oncepost", args...)
			p.await("the Temporal namespace does not exist, will try again")
			if err := shared.server(t).CreateNamespace(t.Context(), later, time.Hour); err != nil {
				t.Fatal(err)
			}
			if args[0] == "worker" {
				p.await("worker running")
				w.start("oncepost", "relay").await("relay running")
			}
			w.mails(1)
			p.stop(syscall.SIGTERM)
		})
	}
}

// door is an address that nothing answers on until it is opened; from then on it leads to another one.
type door struct {
	t    *testing.T
	addr string
}

func newDoor(t *testing.T) *door {
	t.Helper()
	for range 100 { // below the ports that outgoing connections get
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err != nil {
			continue // taken
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return &door{t: t, addr: l.Addr().String()}
	}
	t.Fatal("no free port")
	return nil
}

func (d *door) open(to string) {
	d.t.Helper()
	l, err := new(net.ListenConfig).Listen(d.t.Context(), "tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	p.running.Go(p.accept)
	d.t.Cleanup(p.close)
}
