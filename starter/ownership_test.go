package starter

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

// shardsOf returns how many shards each relay owns, and how many in all.
func shardsOf(relays ...*running) (each []int64, total int64) {
	for _, r := range relays {
		n := r.Stats().Shards
		each, total = append(each, n), total+n
	}
	return each, total
}

func awaitShared(t *testing.T, relays ...*running) {
	t.Helper()
	testdb.Eventually(t, "all shards shared out", func() bool {
		each, total := shardsOf(relays...)
		for _, n := range each {
			if n == 0 {
				return false
			}
		}
		return total == outbox.Shards
	})
}

// holder returns the connection that holds a relay's membership slot, or 0.
func holder(t *testing.T, s *testdb.Schema, slot int) int64 {
	t.Helper()
	return testdb.Value[int64](t, s.DB, "SELECT COALESCE(IS_USED_LOCK(?), 0)", locks.Name(s.Name, fmt.Sprintf("relay %02d", slot)))
}

func TestTwoRelaysShareTheShards(t *testing.T) { // scenario 13
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		a, b := startRelay(t, s, rec, quick()), startRelay(t, s, rec, quick())
		awaitShared(t, a, b)
		enqueue(t, s, messages("m", 1000)...)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 1000 })
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		rec.set(func(r *recorder) {
			for id, n := range r.starts {
				if n != 1 {
					t.Errorf("%s: asked for %d times", id, n)
				}
			}
		})
		if a.Stats().Started == 0 || b.Stats().Started == 0 {
			t.Errorf("one relay did everything: %d and %d", a.Stats().Started, b.Stats().Started)
		}
	})
}

func TestKilledSessionLosesNothing(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = answerAfter(time.Millisecond)
		a, b := startRelay(t, s, rec, quick()), startRelay(t, s, rec, quick())
		awaitShared(t, a, b)
		for i := range 5 {
			enqueue(t, s, messages(fmt.Sprintf("m%d", i), 200)...)
			if id := holder(t, s, i%2); id != 0 {
				if _, err := s.DB.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id)); err != nil {
					t.Logf("kill: %v (it was gone already)", err)
				}
			}
		}
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 1000 })
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		awaitShared(t, a, b)
	})
}

func TestHungReaderLosesItsShards(t *testing.T) { // scenario 39
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		var hang atomic.Bool
		resume := make(chan struct{})
		free := sync.OnceFunc(func() { close(resume) })
		cfg := quick()
		cfg.sessionTimeout = time.Second
		a := startRelayAt(t, s, s.DSN, rec, cfg, func(r *Relay) {
			r.hangs = func() {
				if hang.Load() {
					<-resume
				}
			}
		})
		t.Cleanup(free)
		b := startRelay(t, s, rec, cfg)
		awaitShared(t, a, b)
		hang.Store(true) // a's reader hangs; its owner would tick on for ever
		testdb.Eventually(t, "b owns all shards", func() bool { return b.Stats().Shards == outbox.Shards })
		enqueue(t, s, messages("m", 200)...)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 200 })
		hang.Store(false)
		free()
		awaitShared(t, a, b)
	})
}

func TestShardIsDrainedBeforeItIsHandedOver(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		a, rec, release := startHeld(t, s, 60)
		b := startRelay(t, s, rec, quick())
		testdb.Eventually(t, "a gives up shards", func() bool { return a.Stats().Shards < outbox.Shards })
		reads := b.Stats().Polls
		testdb.Eventually(t, "b reads", func() bool { return b.Stats().Polls > reads+50 })
		rec.set(func(r *recorder) {
			for id, n := range r.attempts {
				if n != 1 {
					t.Errorf("%s: its shard was handed over while its start was in flight", id)
				}
			}
		})
		release()
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 60 })
		awaitShared(t, a, b)
	})
}

func TestSeventeenthRelayStandsBy(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		var relays []*running
		for range memberSlots + 1 {
			relays = append(relays, startRelay(t, s, rec, quick()))
		}
		testdb.Eventually(t, "16 slots taken and all shards owned", func() bool {
			for slot := range memberSlots {
				if holder(t, s, slot) == 0 {
					return false
				}
			}
			_, total := shardsOf(relays...)
			return total == outbox.Shards
		})
		enqueue(t, s, messages("m", 100)...)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 100 })
		id := holder(t, s, 7)
		testdb.Exec(t, s.DB, fmt.Sprintf("KILL %d", id))
		testdb.Eventually(t, "somebody has taken the slot", func() bool { now := holder(t, s, 7); return now != 0 && now != id })
	})
}

func TestTwoSchemasDoNotShareLocks(t *testing.T) { // scenario 38
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		other := testdb.NewSchemaOn(t, s.Server)
		migrated(t, other)
		recA, recB := newRecorder(), newRecorder()
		a, b := startRelay(t, s, recA, quick()), startRelay(t, other, recB, quick())
		awaitShared(t, a)
		awaitShared(t, b)
		enqueue(t, s, messages("a", 100)...)
		enqueue(t, other, messages("b", 100)...)
		recA.await(t, "those of the one", func(r *recorder) bool { return len(r.starts) == 100 })
		recB.await(t, "those of the other", func(r *recorder) bool { return len(r.starts) == 100 })
	})
}

func TestSentinelsComeBack(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "TRUNCATE TABLE outbox_messages")
		startRelay(t, s, newRecorder(), quick())
		testdb.Eventually(t, "32 sentinels", func() bool {
			return testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id >= '~'") == outbox.Shards
		})
	})
}

func TestOwnerOfIsFairAndStable(t *testing.T) {
	live := make([]bool, memberSlots)
	for members := 1; members <= memberSlots; members++ {
		live[members-1] = true
		before := make([]int, outbox.Shards)
		counts := map[int]int{}
		for shard := range outbox.Shards {
			before[shard] = ownerOf(uint8(shard), live)
			counts[before[shard]]++
		}
		for slot, n := range counts {
			if !live[slot] || n > 3*outbox.Shards/members+2 {
				t.Errorf("%d members: slot %d owns %d shards", members, slot, n)
			}
		}
		if members == memberSlots {
			break
		}
		live[members] = true // one joins: shards move to it only
		for shard := range outbox.Shards {
			if now := ownerOf(uint8(shard), live); now != before[shard] && now != members {
				t.Errorf("shard %d moved from slot %d to %d when slot %d joined", shard, before[shard], now, members)
			}
		}
		live[members] = false
	}
	if got := ownerOf(0, make([]bool, memberSlots)); got != -1 {
		t.Errorf("nobody lives: owner %d, want -1", got)
	}
}
