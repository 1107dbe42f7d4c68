package starter

import (
	"context"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

func TestLateCommitStarts(t *testing.T) { // scenario 1
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		tx, err := s.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		late := outbox.Message{EventType: "welcome", Payload: 1} // a UUID made before the others'
		id, err := outbox.Enqueue(t.Context(), tx, late)
		if err != nil {
			t.Fatal(err)
		}
		startRelay(t, s, rec, quick())
		// The others stand behind it in every shard, so that forward reads have passed it.
		var ms []outbox.Message
		for range 300 {
			ms = append(ms, outbox.Message{EventType: "welcome", Payload: 2})
		}
		enqueue(t, s, ms...)
		rec.await(t, "those that commit at once", func(r *recorder) bool { return len(r.starts) == 300 })
		if rec.count(id) != 0 {
			t.Fatal("an uncommitted row was started")
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		rec.await(t, "the one that commits late", func(r *recorder) bool { return r.starts[id] == 1 })
	})
}

// TestLateCommitStartsUnderABacklog: reads go forward from cursors then, and have long passed it.
func TestLateCommitStartsUnderABacklog(t *testing.T) { // scenario 1
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerAfter(20 * time.Millisecond)
		tx, err := s.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, err := outbox.Enqueue(t.Context(), tx, outbox.Message{EventType: "welcome", Payload: 1})
		if err != nil {
			t.Fatal(err)
		}
		const backlog = 20_000
		ms := make([]outbox.Message, backlog)
		for i := range ms {
			ms[i] = outbox.Message{EventType: "welcome", Payload: 2}
		}
		enqueue(t, s, ms...)
		cfg := quick()
		cfg.MaxStarts = 32
		startRelay(t, s, rec, cfg)
		rec.await(t, "a part of the backlog", func(r *recorder) bool { return len(r.starts) >= 1000 })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		rec.await(t, "the one that commits late", func(r *recorder) bool { return r.starts[id] == 1 })
		if n := rec.total(); n >= backlog {
			t.Errorf("it was started after all others")
		}
	})
}

func TestRolledBackNeverStarts(t *testing.T) { // scenario 2
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		relay := startRelay(t, s, rec, quick())
		tx, err := s.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, err := outbox.Enqueue(t.Context(), tx, message("rolled-back"))
		if err != nil {
			t.Fatal(err)
		}
		reads := relay.Stats().Polls
		testdb.Eventually(t, "reads during the transaction", func() bool { return relay.Stats().Polls > reads+5 })
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		enqueue(t, s, message("after"))
		rec.await(t, "the one after it", func(r *recorder) bool { return r.starts["after"] == 1 })
		reads = relay.Stats().Polls
		testdb.Eventually(t, "more reads", func() bool { return relay.Stats().Polls > reads+50 })
		if rec.count(id) != 0 {
			t.Error("a rolled-back row was started")
		}
	})
}

func TestEveryRowStartsOnceAndIsDeleted(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		relay := startRelay(t, s, rec, quick())
		enqueue(t, s, messages("m", 2000)...)
		rec.await(t, "2000 starts", func(r *recorder) bool { return len(r.starts) == 2000 })
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		rec.set(func(r *recorder) {
			for id, n := range r.starts {
				if n != 1 {
					t.Errorf("%s: %d starts", id, n)
				}
			}
		})
		if st := relay.Stats(); st.Started != 2000 || st.Deleted != 2000 || st.Duplicates != 0 {
			t.Errorf("stats: %+v", st)
		}
	})
}

func TestPayloadReachesTheStartByteForByte(t *testing.T) { // scenarios 11, 15
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		startRelay(t, s, rec, quick())
		large := make([]byte, 1<<20)
		for i := range large {
			large[i] = ' '
		}
		copy(large, `{"b":9007199254740993, "a":3544790567247868102}`)
		small := "{\"z\": 1e2,\n \"a\":\"\u00e9\U0001F469<&>\"} "
		enqueue(t, s,
			outbox.Message{ID: "small", EventType: "welcome", Payload: []byte(small)},
			outbox.Message{ID: "large", EventType: "welcome", Payload: large})
		rec.await(t, "both", func(r *recorder) bool { return len(r.starts) == 2 })
		rec.set(func(r *recorder) {
			if r.payloads["small"] != small {
				t.Errorf("small payload: %q", r.payloads["small"])
			}
			if r.payloads["large"] != string(large) {
				t.Error("large payload was changed")
			}
		})
	})
}

func TestDeliverAtIsADelayByTheDatabasesClock(t *testing.T) { // scenario 36
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = func(_ context.Context, row *outbox.Row, attempt int) Outcome {
			if row.MessageID == "retried" && attempt < 3 {
				return Outcome{Class: Away, Reason: "scripted"}
			}
			return Outcome{}
		}
		startRelay(t, s, rec, quick())
		hour := func(id string, h time.Duration) outbox.Message {
			m := message(id)
			m.DeliverAt = time.Now().Add(h * time.Hour)
			return m
		}
		enqueue(t, s, hour("past", -1), hour("future", 1), hour("retried", 1), message("now"))
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 4 })
		rec.set(func(r *recorder) {
			if d := r.delays["past"]; d != 0 {
				t.Errorf("past: delay %s, want 0", d)
			}
			if d := r.delays["now"]; d != 0 {
				t.Errorf("now: delay %s, want 0", d)
			}
			for _, id := range []string{"future", "retried"} {
				if d := r.delays[id]; d <= 59*time.Minute || d > time.Hour {
					t.Errorf("%s: delay %s, want just below 1h", id, d)
				}
			}
		})
	})
}

func TestSameIDAgainAfterItsDeleteIsRefusedAndDeleted(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		relay := startRelay(t, s, rec, quick())
		for n := 1; n <= 3; n++ {
			enqueue(t, s, message("natural"))
			rec.await(t, "a start", func(r *recorder) bool { return r.starts["natural"] == n })
			testdb.Eventually(t, "its delete", func() bool { return pending(t, s) == 0 })
		}
		if st := relay.Stats(); st.Started != 1 || st.Duplicates != 2 {
			t.Errorf("stats: %+v", st)
		}
	})
}
