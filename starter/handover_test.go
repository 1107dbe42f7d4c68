package starter

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

// TestAShardIsHandedOverWithALockedRow: a producer's open transaction, which may last for hours, keeps no relay from its share.
func TestAShardIsHandedOverWithALockedRow(t *testing.T) { // scenarios 13, 37
	for name, outcome := range map[string]Outcome{
		"to be deleted": {}, "to be moved": {Class: Reused, Reason: "used before"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
				ids := enqueue(t, s, messages("held", 200)...) // some in every shard outside the express lane
				tx := hold(t, s, ids...)
				rec := newRecorder()
				rec.answer = func(context.Context, *outbox.Row, int) Outcome { return outcome }
				a := startRelay(t, s, rec, quick())
				rec.await(t, "a start of each", func(r *recorder) bool { return len(r.attempts) == len(ids) })
				b := startRelay(t, s, rec, quick())
				awaitShared(t, a, b)
				if n := pending(t, s); n != len(ids) {
					t.Fatalf("%d rows, want all that are held", n)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
			})
		})
	}
}

// TestARelayEndsItsOwnPreviousSessionOnly: it is known by the mark it holds, since servers give connection IDs anew.
func TestARelayEndsItsOwnPreviousSessionOnly(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		r, err := New(openDSN(t, s.DSN), newRecorder(), quick())
		if err != nil {
			t.Fatal(err)
		}
		r.hard = t.Context()
		term := func() *sessions {
			t.Helper()
			opened, err := r.openSessions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := opened.close(); err != nil {
					t.Error(err)
				}
			})
			if err := r.endStale(t.Context(), opened); err != nil {
				t.Fatal(err)
			}
			return opened
		}
		lives := func(l *locks.Session) bool {
			return testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Killed' AND id = "+itoa(l.ID())) == 1
		}
		first := term()
		second := term()
		testdb.Eventually(t, "the end of all of the first term's sessions", func() bool { return !slices.ContainsFunc(first.all, lives) })

		// The server was started again: the second term's connection IDs are somebody else's now.
		for i, m := range second.marks {
			if _, err := second.all[i].Unlock(t.Context(), m.name); err != nil {
				t.Fatal(err)
			}
		}
		third := term()
		if slices.ContainsFunc(second.all, func(l *locks.Session) bool { return !lives(l) }) {
			t.Error("a session was ended that does not hold its mark")
		}
		// And even where somebody holds the mark, it is the session meant only with both.
		r.stale[0].id = second.owner().ID()
		r.stale = r.stale[:1]
		term()
		if !lives(second.owner()) || !lives(third.owner()) {
			t.Error("a session was ended, of which only the mark or only the connection ID fits")
		}
	})
}

// TestARelayIsBackBeforeTheServerGivesUpItsSession: after a cut of the network the server knows nothing of the client's end.
func TestARelayIsBackBeforeTheServerGivesUpItsSession(t *testing.T) { // scenario 5
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		hole := testnet.New(t, s.Server.Addr)
		cfg := quick()
		cfg.callTimeout = 500 * time.Millisecond
		cfg.sessionTimeout = time.Hour
		relay := startRelayAt(t, s, throughHole(s, hole), newRecorder(), cfg, nil)
		awaitShared(t, relay)
		hole.Set(testnet.Silent)
		relay.conds.await(t, CondDatabase, true)
		hole.Set(testnet.Pass)
		relay.conds.await(t, CondDatabase, false)
		awaitShared(t, relay) // all shards: nobody else holds the locks
	})
}

// TestASickRelayOwnsNothingBesideAWellOne: it reaches the database and not Temporal. Alone, or among others like it, it keeps
// its shards, and waits.
func TestASickRelayOwnsNothingBesideAWellOne(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		sick, well := newRecorder(), newRecorder()
		for _, rec := range []*recorder{sick, well} {
			rec.answer = func(context.Context, *outbox.Row, int) (o Outcome) {
				rec.set(func(r *recorder) {
					if r.away {
						o = Outcome{Class: Away, Reason: "no frontend"}
					}
				})
				return o
			}
		}
		sick.set(func(r *recorder) { r.away = true })
		a := startRelay(t, s, sick, quick())
		awaitShared(t, a)
		b := startRelay(t, s, well, quick())
		shards := func(want ...int64) func() bool {
			return func() bool { return a.Stats().Shards == want[0] && b.Stats().Shards == want[1] }
		}
		testdb.Eventually(t, "the well relay has all shards", shards(0, outbox.Shards))
		enqueue(t, s, messages("first", 320)...)
		well.await(t, "all", func(r *recorder) bool { return len(r.starts) == 320 })

		well.set(func(r *recorder) { r.away = true }) // for long enough to tell it from a blink
		enqueue(t, s, message("looks"))               // a relay without rows does not look at the namespace
		testdb.Eventually(t, "two that are ill share", func() bool { return a.Stats().Shards > 0 && b.Stats().Shards > 0 })

		sick.set(func(r *recorder) { r.away = false })
		testdb.Eventually(t, "the one that is well again has all shards", shards(outbox.Shards, 0))
		enqueue(t, s, messages("second", 320)...)
		sick.await(t, "all", func(r *recorder) bool { return len(r.starts)+well.total() >= 641 })
	})
}
