package starter

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"

	"github.com/oncepost/oncepost/outbox"
)

// idleRelay is a relay that reads nothing: rows are admitted by hand. At the end of the test its starts are waited for.
func idleRelay(t *testing.T, s Starter) *running {
	t.Helper()
	conds := &conditions{}
	cfg := quick()
	cfg.Report = conds.report
	r, err := New(new(sql.DB), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.hard = t.Context()
	t.Cleanup(r.workers.Wait)
	return &running{Relay: r, conds: conds}
}

// rowsOf makes n rows of one shard.
func rowsOf(shard uint8, prefix string, n int) []outbox.Row {
	rows := make([]outbox.Row, n)
	for i := range rows {
		rows[i] = row(shard, fmt.Sprintf("%s:%02d", prefix, i))
	}
	return rows
}

func (r *running) admit(rows []outbox.Row) (fresh int) {
	for _, n := range r.rows.admit(r.rows.beginRead(), rows, all()) {
		fresh += n
	}
	return fresh
}

// closed shuts the gate, as an outage does, and lets trials begin.
func (r *running) closed(t *testing.T, namespace Outcome) {
	t.Helper()
	r.gate.verifiedAs(Outcome{})
	away(r.gate, manyFailures)
	if namespace.Class != Started {
		r.gate.verifiedAs(namespace)
	}
	r.gate.verifiedAs(Outcome{})
	if r.gate.isOpen() || r.gate.trials != trialsAtOnce {
		t.Fatalf("open %v, %d trials", r.gate.isOpen(), r.gate.trials)
	}
}

// TestRowsOfATrialSetOutTogether: the first of them is a bad one, and fails at once.
func TestRowsOfATrialSetOutTogether(t *testing.T) {
	for range 50 {
		rec := newRecorder()
		var begun atomic.Int32
		together := make(chan struct{})
		rec.answer = func(ctx context.Context, row *outbox.Row, _ int) Outcome {
			if begun.Add(1) == trialsAtOnce {
				close(together)
			}
			if row.MessageID == "m:00" {
				return Outcome{Class: Away, Reason: "bad"}
			}
			select {
			case <-together:
			case <-time.After(2 * time.Second):
				t.Error("a trial runs, and others have not set out")
			}
			return Outcome{}
		}
		r := idleRelay(t, rec)
		r.closed(t, Outcome{})
		r.gate.until = time.Time{} // the pause after the failures before has passed
		r.admit(rowsOf(1, "m", trialsAtOnce))
		r.kick()
		r.workers.Wait()
		if n := rec.total(); !r.gate.isOpen() || n != trialsAtOnce-1 {
			t.Fatalf("the bad row ended the trial: %d of %d have started, open %v", n, trialsAtOnce-1, r.gate.isOpen())
		}
	}
}

// TestAfterAnOutageQueuedRowsAreReadAgain: they may be gone or changed since.
func TestAfterAnOutageQueuedRowsAreReadAgain(t *testing.T) {
	for _, c := range []struct {
		name      string
		namespace Outcome // the gate was closed with
		again     bool
	}{
		{"the namespace was away", Outcome{Class: Away, Reason: "no frontend"}, true},
		{"starts failed only", Outcome{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := newRecorder()
			first, rest := make(chan struct{}), make(chan struct{})
			free := sync.OnceFunc(func() { close(rest) })
			defer free()
			rec.answer = func(_ context.Context, row *outbox.Row, _ int) Outcome {
				if row.MessageID == "m:00" {
					<-first
				} else {
					<-rest
				}
				return Outcome{}
			}
			r := idleRelay(t, rec)
			r.admit(rowsOf(2, "paused", 1))
			r.rows.retry(r.rows.next(1).Key, time.Hour, time.Hour)
			r.closed(t, c.namespace)
			rows := rowsOf(1, "m", 2*trialsAtOnce)
			r.admit(slices.Clone(rows))
			r.kick()
			testdb.Eventually(t, "a trial", func() bool { return r.rows.starting() == trialsAtOnce })
			close(first)
			r.conds.await(t, CondTemporal, false)
			testdb.Eventually(t, "an empty queue", func() bool { return !r.rows.queued() })
			if c.again {
				if n := r.admit(rows); n != trialsAtOnce {
					t.Errorf("the next read finds %d rows new, want the %d that were queued", n, trialsAtOnce)
				}
				testdb.Eventually(t, "the end of a row's pause", func() bool { return r.admit(rowsOf(2, "paused", 1)) == 1 })
				return
			}
			testdb.Eventually(t, "the queued rows' starts", func() bool { return r.rows.starting() == 2*trialsAtOnce-1 })
			if r.admit(rowsOf(2, "paused", 1)) != 0 {
				t.Error("the pause of a row was ended with no outage before")
			}
		})
	}
}

// TestNothingStartsOnceAStopHasBegun: rows in flight come to their end, and take no further one along.
func TestNothingStartsOnceAStopHasBegun(t *testing.T) {
	rec := newRecorder()
	release := make(chan struct{})
	rec.answer = func(context.Context, *outbox.Row, int) Outcome {
		<-release
		return Outcome{}
	}
	r := idleRelay(t, rec)
	r.limit = newLimiter(10, true)
	r.gate.verifiedAs(Outcome{})
	r.admit(rowsOf(1, "m", 100))
	r.kick()
	testdb.Eventually(t, "10 starts in flight", func() bool { return r.rows.starting() == 10 })
	r.stopping.Store(true)
	close(release)
	r.workers.Wait()
	if r.next() != nil {
		t.Error("a row was taken to be started")
	}
	r.kick()
	r.workers.Wait()
	if n := rec.total(); n != 10 || !r.rows.queued() {
		t.Errorf("%d rows were started, want the 10 that were in flight", n)
	}
	if n := r.finds.waiting(); n != 10 {
		t.Errorf("%d rows wait for their delete, want 10", n)
	}
}
