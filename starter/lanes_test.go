package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

func withPriority(ms []outbox.Message, p int) []outbox.Message {
	for i := range ms {
		ms[i].Priority = p
	}
	return ms
}

func TestExpressIsAmongTheNextThousand(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s, withPriority(messages("slow", 20_000), 5)...)
		rec := newRecorder()
		var gate atomic.Int64
		reached := make(chan struct{})
		proceed := make(chan struct{})
		rec.answer = func(context.Context, *outbox.Row, int) Outcome {
			if gate.Add(1) == 2000 {
				close(reached)
			}
			if gate.Load() >= 2000 {
				<-proceed
			}
			return Outcome{}
		}
		relay := startRelay(t, s, rec, quick())
		<-reached
		enqueue(t, s, withPriority(messages("express", 1), 1)...)
		at := rec.total() + int(relay.Stats().InFlight) // what has begun has begun
		close(proceed)
		rec.await(t, "the express one", func(r *recorder) bool { return r.starts["express:00000"] == 1 })
		rec.set(func(r *recorder) {
			if i := slices.Index(r.order, "express:00000"); i > at+1000 {
				t.Errorf("started as number %d after it was committed", i-at)
			}
		})
	})
}

func TestOthersHaveAShareBesideExpress(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s, withPriority(messages("express", 4000), 1)...)
		enqueue(t, s, withPriority(messages("other", 500), 5)...)
		rec := newRecorder()
		startRelay(t, s, rec, quick())
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 4500 })
		rec.set(func(r *recorder) {
			others := 0
			for _, id := range r.order[:2000] {
				if strings.HasPrefix(id, "other") {
					others++
				}
			}
			if others < 300 || others > 600 {
				t.Errorf("%d of the first 2000 starts were not express, want about every fourth", others)
			}
		})
	})
}

func TestNaturalKeysDoNotStarve(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerAfter(time.Millisecond)
		startRelay(t, s, rec, quick())
		// UUIDs keep coming, and sort before a natural key.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				ms := make([]outbox.Message, 200)
				for i := range ms {
					ms[i] = outbox.Message{EventType: "welcome", Payload: i}
				}
				if _, err := outbox.EnqueueMany(ctx, s.DB, ms); err != nil && ctx.Err() == nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for i := range 20 {
			id := fmt.Sprintf("payment_failed:%02d", i)
			enqueue(t, s, message(id))
			rec.await(t, id, func(r *recorder) bool { return r.starts[id] == 1 })
		}
		for i := range 5 { // and before them
			id := fmt.Sprintf("!first:%02d", i)
			enqueue(t, s, message(id))
			rec.await(t, id, func(r *recorder) bool { return r.starts[id] == 1 })
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestNudgeEndsThePause(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		cfg := quick()
		cfg.MaxPoll = 5 * time.Second
		relay := startRelay(t, s, rec, cfg)
		testdb.Eventually(t, "a long pause", func() bool {
			before := relay.Stats().Polls
			time.Sleep(700 * time.Millisecond)
			return before > 0 && relay.Stats().Polls == before
		})
		enqueue(t, s, message("!a")) // a natural key, before where a forward read goes on
		began := time.Now()
		relay.Nudge()
		rec.await(t, "the start", func(r *recorder) bool { return r.starts["!a"] == 1 })
		if d := time.Since(began); d > 400*time.Millisecond {
			t.Errorf("started %s after the nudge", d)
		}
	})
}

func TestLargeRowsAreBoundedInBytes(t *testing.T) { // scenario 40
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		big := `"` + strings.Repeat("x", 1<<20-2) + `"`
		for i := range 40 {
			enqueue(t, s, outbox.Message{ID: fmt.Sprintf("big:%02d", i), EventType: "welcome", Payload: []byte(big)})
		}
		rec := newRecorder()
		var bytes, most atomic.Int64
		rec.answer = func(ctx context.Context, row *outbox.Row, _ int) Outcome {
			raise(&most, bytes.Add(int64(len(row.Payload))))
			sleep(ctx, 5*time.Millisecond)
			bytes.Add(-int64(len(row.Payload)))
			return Outcome{}
		}
		cfg := quick()
		cfg.MaxBytes = 4 << 20
		startRelay(t, s, rec, cfg)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 40 })
		if got := most.Load(); got > 4<<20 {
			t.Errorf("%d bytes of payloads at once, want at most %d", got, 4<<20)
		}
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
	})
}
