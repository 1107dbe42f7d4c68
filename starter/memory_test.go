package starter

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// weigher is a Starter that takes its time, and weighs what the relay holds meanwhile.
type weigher struct {
	pause         time.Duration
	every         int64 // starts between two weighings of the heap
	starts        atomic.Int64
	bytes         atomic.Int64 // of payloads, now
	most, heapest atomic.Int64 // of payloads and of the live heap, ever
}

func (w *weigher) Start(ctx context.Context, row *outbox.Row, _ time.Duration) Outcome {
	size := int64(len(row.Payload))
	raise(&w.most, w.bytes.Add(size))
	if w.starts.Add(1)%w.every == 0 {
		raise(&w.heapest, liveHeap())
	}
	sleep(ctx, w.pause)
	w.bytes.Add(-size)
	return Outcome{}
}

func (w *weigher) Namespace(context.Context) (name, id string, o Outcome) {
	return "default", "uuid-1", Outcome{}
}

func raise(most *atomic.Int64, n int64) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}

// liveHeap is what is reachable: garbage that waits for its collection says nothing about bounds.
func liveHeap() int64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}

// TestMemoryIsBounded: a backlog of many times what the relay may hold.
func TestMemoryIsBounded(t *testing.T) { // scenario 40
	for name, c := range map[string]struct {
		rows, size int
		payloads   int64 // in starts at once
		heap       int64
		pause      time.Duration
		cfg        Config
	}{
		// Beside the payloads, each of the loads has a row in the driver's hands.
		"rows of 1 MiB": {
			rows: 150, size: 1 << 20, payloads: 16 << 20, heap: (16 + 2*maxLoads) << 20, pause: 250 * time.Millisecond,
		},
		// The largest that come with their page, where no number of rows is a bound: one lane, and the page to fill it.
		"rows of 8 KiB": {
			rows: 8_000, size: outbox.InlineSize, payloads: 64 * outbox.InlineSize, heap: 3 * pageBytes, pause: 20 * time.Millisecond,
			cfg: Config{MaxPage: 1_000_000, MaxStarts: 64, FixedSizes: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.EachAlone(t, func(t *testing.T, s *testdb.Schema) {
				migrated(t, s)
				fill(t, s, c.rows, c.size)
				cfg := quick()
				cfg.MaxPage, cfg.MaxStarts, cfg.FixedSizes = c.cfg.MaxPage, c.cfg.MaxStarts, c.cfg.FixedSizes
				w := &weigher{pause: c.pause, every: int64(c.rows / 30)}
				before := liveHeap()
				startRelay(t, s, w, cfg)
				testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
				if n := w.starts.Load(); n < int64(c.rows) {
					t.Errorf("%d starts of %d rows", n, c.rows)
				}
				most, heap := w.most.Load(), w.heapest.Load()-before
				t.Logf("at most %d KiB of payloads in starts, and %d KiB more of live heap", most>>10, heap>>10)
				if most > c.payloads {
					t.Errorf("%d bytes of payloads in starts at once, want at most %d", most, c.payloads)
				}
				if heap > c.heap {
					t.Errorf("%d bytes of live heap more than before, want at most %d", heap, c.heap)
				}
			})
		})
	}
}

// fill makes so many rows of so many bytes without sending them.
func fill(t *testing.T, s *testdb.Schema, rows, size int) {
	t.Helper()
	const atOnce = 100
	for n := 0; n < rows; n += atOnce {
		testdb.Exec(t, s.DB, `INSERT INTO outbox_messages (message_id, event_type, payload)
 WITH RECURSIVE numbers AS (SELECT ? AS n UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?)
 SELECT CONCAT('m:', n), 'welcome', CONCAT('"', REPEAT('x', ? - 2), '"') FROM numbers`, n, min(n+atOnce, rows), size)
	}
}
