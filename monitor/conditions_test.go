package monitor

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// cases are how each condition comes to be, and passes. The database's absence is TestDatabaseAway's.
var cases = map[string]struct{ begin, end func(w *world) }{
	CondTemporal: {
		func(w *world) { w.temporal.set(func() { w.temporal.away = true }) },
		func(w *world) { w.temporal.set(func() { w.temporal.away = false }) },
	},
	CondNoRelay:  {func(w *world) { w.kill(RoleRelay) }, func(w *world) { w.begin(RoleRelay) }},
	CondNoWorker: {func(w *world) { w.kill(RoleWorker) }, func(w *world) { w.begin(RoleWorker) }},
	CondStalled: {
		func(w *world) { w.temporal.set(func() { w.relay.ReadAgo = 60 }) },
		func(w *world) { w.temporal.set(func() { w.relay.ReadAgo = 0 }) },
	},
	CondMisconfigured: reportsIt("misconfigured"),
	CondNotMoved:      reportsIt("message_not_moved"),
	CondStopped: {
		func(w *world) {
			testdb.Exec(w, w.s.DB, "INSERT INTO sending_stops (scope, class, cause) VALUES ('all', 'account_paused', 'SES has paused sending')")
		},
		func(w *world) { testdb.Exec(w, w.s.DB, "DELETE FROM sending_stops") },
	},
	CondOldestRow: {
		func(w *world) {
			if _, err := outbox.Enqueue(w.Context(), w.s.DB, outbox.Message{EventType: "welcome", Payload: 1}); err != nil {
				w.Fatal(err)
			}
		},
		func(w *world) { testdb.Exec(w, w.s.DB, "DELETE FROM outbox_messages WHERE message_id < '~'") },
	},
	CondFailedRows: {
		func(w *world) {
			testdb.Exec(w, w.s.DB, `INSERT INTO outbox_failed (message_id, event_type, payload, priority, created_at, reason, detail)
 VALUES ('a', 'welcome', '{}', 3, NOW(6), 'never_starts', 'x')`)
		},
		func(w *world) { testdb.Exec(w, w.s.DB, "DELETE FROM outbox_failed") },
	},
	CondFailed:    counts("failed"),
	CondParked:    counts("parked"),
	CondStuck:     counts("stuck"),
	CondTasksFail: counts("tasks"),
	CondUnreadable: {
		func(w *world) { testdb.Exec(w, w.s.DB, "RENAME TABLE outbox_failed TO gone") },
		func(w *world) { testdb.Exec(w, w.s.DB, "RENAME TABLE gone TO outbox_failed") },
	},
	CondLockLost: {
		func(w *world) {
			if tell, err := NewRecorder(w.s.DB).LockLost(w.Context(), "job/nightly", "it may have run twice", true); err != nil || !tell {
				w.Fatal(tell, err)
			}
			testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6) - INTERVAL 1 SECOND") // the job has died
		},
		func(w *world) { testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET holds_until = NOW(6)") },
	},
}

func counts(name string) struct{ begin, end func(w *world) } {
	set := func(n int64) func(w *world) {
		return func(w *world) { w.temporal.set(func() { w.temporal.counts[name] = n }) }
	}
	return struct{ begin, end func(w *world) }{set(3), set(0)}
}

func reportsIt(name string) struct{ begin, end func(w *world) } {
	set := func(of map[string]string) func(w *world) {
		return func(w *world) { w.temporal.set(func() { w.relay.Conditions = of }) }
	}
	return struct{ begin, end func(w *world) }{set(map[string]string{name: "permission denied"}), set(nil)}
}

// Each condition is told once by all watches together, and nothing beside it; and that it is over, once.
func TestEachConditionIsToldAndItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(w *world) {
				for range 3 {
					w.watch()
				}
				c.begin(w)
				w.people.await(w.T, name, 1, 0)
				c.end(w)
				w.people.await(w.T, name, 1, 1)
				if told := w.people.names(); !slices.Equal(told, []string{name}) {
					w.Errorf("people heard of %q", told)
				}
				testdb.Eventually(w, "no row left in ops_conditions", func() bool {
					return testdb.Value[int](w, w.s.DB, "SELECT COUNT(*) FROM ops_conditions") == 0
				})
			})
		})
	}
}

// Every condition has a case above, a chapter and a row in the runbook, and words.
func TestEveryConditionIsWhole(t *testing.T) {
	runbook, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(order) != len(kinds) {
		t.Errorf("%d conditions in order, %d kinds", len(order), len(kinds))
	}
	for _, name := range order {
		k := kinds[name]
		if _, covered := cases[name]; !covered && name != CondDatabase {
			t.Errorf("%s has no case", name)
		}
		if !strings.Contains(string(runbook), "\n## "+name+"\n") || !strings.Contains(string(runbook), "\n| ["+name+"](#"+name+") |") {
			t.Errorf("docs/runbook.md has no chapter, or no row, of %s", name)
		}
		if k.title == "" || k.do == "" || k.see == nil {
			t.Errorf("%s: %+v", name, k)
		}
		for _, cause := range k.causes {
			if slices.Index(order, cause) < 0 || slices.Index(order, cause) > slices.Index(order, name) && name != CondStuck {
				t.Errorf("%s comes before its cause %s", name, cause)
			}
		}
	}
}
