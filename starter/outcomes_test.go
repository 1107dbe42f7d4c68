package starter

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

func never(reason string) Outcome { return Outcome{Class: Never, Reason: reason} }

func TestPoisonFirstDoesNotHoldUpTheRest(t *testing.T) { // scenario 3
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerTo("!poison", never("the workflow ID is not to Temporal's taste"))
		enqueue(t, s, message("!poison")) // sorts before all others in its shard
		enqueue(t, s, messages("good", 999)...)
		relay := startRelay(t, s, rec, quick())
		rec.await(t, "999 starts", func(r *recorder) bool { return len(r.starts) == 999 })
		testdb.Eventually(t, "the poison in outbox_failed", func() bool { return len(failedRows(t, s)) == 1 })
		if got := failedRows(t, s); got["!poison"] != outbox.ReasonNeverStarts {
			t.Errorf("outbox_failed: %v", got)
		}
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		cond := relay.conds.await(t, CondFailed, true)
		if cond.MessageID != "!poison" || !strings.Contains(cond.Detail, "Temporal's taste") {
			t.Errorf("report: %+v", cond)
		}
		if n, _ := relay.conds.find(CondMisconfigured, true); n != 0 {
			t.Error("one poison message was taken for a wrong configuration")
		}
	})
}

func TestPoisonAloneWaitsForProof(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerTo("alone", never("no"))
		enqueue(t, s, message("alone"))
		relay := startRelay(t, s, rec, quick())
		relay.conds.await(t, CondMisconfigured, true)
		if len(failedRows(t, s)) != 0 {
			t.Error("a message was moved with nothing to show that it is to blame")
		}
		for i := 0; len(failedRows(t, s)) == 0 && i < 200; i++ { // others start, and show it
			enqueue(t, s, message(fmt.Sprintf("good:%d", i)))
			time.Sleep(50 * time.Millisecond)
		}
		if got := failedRows(t, s); got["alone"] != outbox.ReasonNeverStarts {
			t.Errorf("outbox_failed: %v", got)
		}
		relay.conds.await(t, CondMisconfigured, false)
	})
}

func TestReasonsThatDifferAreTheConfigurationToo(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = func(_ context.Context, row *outbox.Row, n int) Outcome {
			return never(fmt.Sprintf("request %s/%d refused", row.MessageID, n))
		}
		enqueue(t, s, messages("m", 50)...)
		relay := startRelay(t, s, rec, quick())
		relay.conds.await(t, CondMisconfigured, true)
		retried := relay.Stats().Retried
		testdb.Eventually(t, "more probes", func() bool { return relay.Stats().Retried > retried+50 })
		if n := len(failedRows(t, s)); n != 0 {
			t.Errorf("%d messages were moved", n)
		}
	})
}

// TestManyBadRowsDoNotStopTheRest: more of them than close the gate, and in front of the others.
func TestManyBadRowsDoNotStopTheRest(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerTo("bad", Outcome{Class: Away, Reason: "internal error"})
		enqueue(t, s, messages("bad", 300)...)
		enqueue(t, s, messages("good", 1000)...)
		cfg := quick()
		cfg.maxBackoff = 5 * time.Second
		startRelay(t, s, rec, cfg)
		rec.await(t, "the good ones", func(r *recorder) bool { return len(r.starts) == 1000 })
	})
}

// TestAMessageThatCannotBeMovedHoldsNobodyUp: outbox_failed cannot be written to.
func TestAMessageThatCannotBeMovedHoldsNobodyUp(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "RENAME TABLE outbox_failed TO elsewhere")
		rec := newRecorder()
		rec.answer = answerTo("reused", Outcome{Class: Reused, Reason: "started for something else"})
		enqueue(t, s, message("reused"))
		enqueue(t, s, messages("good", 500)...)
		relay := startRelay(t, s, rec, quick())
		rec.await(t, "the good ones", func(r *recorder) bool { return len(r.starts) == 500 })
		testdb.Eventually(t, "only the bad one left", func() bool { return pending(t, s) == 1 })
		relay.conds.await(t, CondNotMoved, true)
		if n, _ := relay.conds.find(CondDatabase, true); n != 0 {
			t.Error("the database was blamed")
		}
	})
}

// TestAReusedIDThatIsHeldIsNotTriedOverAndOver: a producer's transaction keeps the row from being moved.
func TestAReusedIDThatIsHeldIsNotTriedOverAndOver(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		tx := hold(t, s, enqueue(t, s, message("reused"))...)
		rec := newRecorder()
		rec.answer = func(context.Context, *outbox.Row, int) Outcome { return Outcome{Class: Reused, Reason: "used before"} }
		relay := startRelay(t, s, rec, quick())
		reads := relay.Stats().Polls
		testdb.Eventually(t, "many reads", func() bool { return relay.Stats().Polls > reads+60 })
		rec.set(func(r *recorder) {
			if n := r.attempts["reused"]; n != 1 {
				t.Errorf("%d starts of one row", n)
			}
		})
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		relay.conds.await(t, CondIDReused, true)
	})
}

func TestEveryStartRefusedIsTheConfiguration(t *testing.T) { // scenario 41
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		var wrong atomic.Bool
		wrong.Store(true)
		rec.answer = answerWhile(&wrong, never("something about the namespace that no table of texts knows"))
		enqueue(t, s, messages("m", 300)...)
		relay := startRelay(t, s, rec, quick())
		cond := relay.conds.await(t, CondMisconfigured, true)
		if !strings.Contains(cond.Detail, "no table of texts knows") {
			t.Errorf("report: %+v", cond)
		}
		retried := relay.Stats().Retried
		testdb.Eventually(t, "probes", func() bool { return relay.Stats().Retried > retried+3 })
		if got := failedRows(t, s); len(got) != 0 {
			t.Errorf("outbox_failed: %v", got)
		}
		if n := pending(t, s); n != 300 {
			t.Errorf("%d rows wait, want 300", n)
		}
		wrong.Store(false)
		relay.conds.await(t, CondMisconfigured, false)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 300 })
		if got := failedRows(t, s); len(got) != 0 {
			t.Errorf("outbox_failed afterwards: %v", got)
		}
		if n, _ := relay.conds.find(CondMisconfigured, true); n != 1 {
			t.Errorf("reported %d times, want once", n)
		}
	})
}

func TestMisconfiguredStopsAtOnce(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		var wrong atomic.Bool
		wrong.Store(true)
		rec.answer = answerWhile(&wrong, Outcome{Class: Misconfigured, Reason: "permission denied"})
		relay := startRelay(t, s, rec, quick())
		enqueue(t, s, message("a"))
		relay.conds.await(t, CondMisconfigured, true)
		if n := pending(t, s); n != 1 {
			t.Errorf("%d rows wait, want 1", n)
		}
		wrong.Store(false)
		rec.await(t, "the start", func(r *recorder) bool { return r.starts["a"] == 1 })
	})
}

func TestTemporalAwayFailsNothing(t *testing.T) { // scenario 4
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		var away atomic.Bool
		away.Store(true)
		rec.answer = answerWhile(&away, Outcome{Class: Away, Reason: "connection refused"})
		enqueue(t, s, messages("m", 1000)...)
		relay := startRelay(t, s, rec, quick())
		relay.conds.await(t, CondTemporal, true)
		retried := relay.Stats().Retried
		testdb.Eventually(t, "further probes", func() bool { return relay.Stats().Retried > retried+5 })
		if n := relay.Stats().Retried; n > 300 {
			t.Errorf("%d starts were tried while every one failed: the relay did not back off", n)
		}
		if n := pending(t, s); n != 1000 || len(failedRows(t, s)) != 0 {
			t.Errorf("%d rows wait and %d failed, want 1000 and 0", n, len(failedRows(t, s)))
		}
		away.Store(false)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 1000 })
		relay.conds.await(t, CondTemporal, false)
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
	})
}

func TestErrorsOfSomeRowsBackOffThoseOnly(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerTo("bad", Outcome{Class: Away, Reason: "internal error"})
		enqueue(t, s, messages("bad", 3)...)
		enqueue(t, s, messages("good", 1000)...)
		startRelay(t, s, rec, quick())
		rec.await(t, "the good ones", func(r *recorder) bool { return len(r.starts) == 1000 })
		testdb.Eventually(t, "only the bad ones left", func() bool { return pending(t, s) == 3 })
		if len(failedRows(t, s)) != 0 {
			t.Error("a row was failed for an error that may pass")
		}
		rec.set(func(r *recorder) { r.answer = nil })
		rec.await(t, "the bad ones as well", func(r *recorder) bool { return len(r.starts) == 1003 })
	})
}

func TestReusedIDIsNeverDropped(t *testing.T) { // scenario 34
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerTo("reused", Outcome{Class: Reused, Reason: "started for something else"})
		relay := startRelay(t, s, rec, quick())
		enqueue(t, s, message("reused"), message("fine"))
		cond := relay.conds.await(t, CondIDReused, true)
		if cond.MessageID != "reused" {
			t.Errorf("report: %+v", cond)
		}
		if got := failedRows(t, s); got["reused"] != outbox.ReasonIDReused || len(got) != 1 {
			t.Errorf("outbox_failed: %v", got)
		}
		// The same ID may fail again.
		enqueue(t, s, message("reused"))
		testdb.Eventually(t, "a second record", func() bool {
			return testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_failed") == 2
		})
	})
}

func TestAnotherNamespaceStopsTheRelay(t *testing.T) { // scenario 48
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		first := newRecorder()
		relay := startRelay(t, s, first, quick())
		enqueue(t, s, message("a"))
		first.await(t, "a start", func(r *recorder) bool { return r.starts["a"] == 1 })
		if err := relay.stop(); err != nil {
			t.Fatal(err)
		}

		rebuilt := newRecorder()
		rebuilt.namespace = "uuid-2"
		relay = startRelay(t, s, rebuilt, quick())
		enqueue(t, s, message("b"))
		cond := relay.conds.await(t, CondMisconfigured, true)
		if !strings.Contains(cond.Detail, "--rebind") || !strings.Contains(cond.Detail, "uuid-2") {
			t.Errorf("report: %s", cond.Detail)
		}
		if rebuilt.total() != 0 || pending(t, s) != 1 {
			t.Fatal("a row was started in a namespace that the outbox does not know")
		}
		if err := relay.stop(); err != nil {
			t.Fatal(err)
		}

		cfg := quick()
		cfg.Rebind = true
		startRelay(t, s, rebuilt, cfg)
		rebuilt.await(t, "a start after the rebind", func(r *recorder) bool { return r.starts["b"] == 1 })
	})
}

func TestNamespaceRebuiltWhileRunningStopsTheRelay(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		relay := startRelay(t, s, rec, quick())
		enqueue(t, s, message("a"))
		rec.await(t, "a start", func(r *recorder) bool { return r.starts["a"] == 1 })
		rec.set(func(r *recorder) { r.namespace = "uuid-2" })
		relay.gate.mu.Lock()
		relay.gate.verified = time.Now().Add(-2 * expired) // as after an idle while
		relay.gate.mu.Unlock()
		enqueue(t, s, message("b"))
		relay.conds.await(t, CondMisconfigured, true)
		if rec.count("b") != 0 {
			t.Error("a row was started in the rebuilt namespace")
		}
	})
}
