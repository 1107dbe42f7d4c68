package starter

import (
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// verifyAgain lets the namespace be looked at before anything more is started, as after an idle while.
func (r *running) verifyAgain() {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	r.gate.verified = time.Now().Add(-2 * expired)
	r.gate.used = true
	r.gate.signal()
}

// TestAnUnreadableBindingIsTheDatabasesFailure: Temporal answers, and must not be blamed.
func TestAnUnreadableBindingIsTheDatabasesFailure(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rename := func(from, to string) {
			t.Helper()
			if _, err := s.DB.ExecContext(t.Context(), "RENAME TABLE "+from+" TO "+to); err != nil {
				t.Fatal(err)
			}
		}
		rec := newRecorder()
		relay := startRelay(t, s, rec, quick())
		enqueue(t, s, message("before"))
		rec.await(t, "a start", func(r *recorder) bool { return r.starts["before"] == 1 })
		rename("outbox_binding", "elsewhere")
		relay.verifyAgain()
		relay.conds.await(t, CondDatabase, true)
		enqueue(t, s, message("during"))
		reads := relay.Stats().Polls
		testdb.Eventually(t, "reads, while the namespace cannot be verified", func() bool { return relay.Stats().Polls > reads+20 })
		if rec.count("during") != 0 {
			t.Error("a row was started in a namespace that could not be verified")
		}
		if n, _ := relay.conds.find(CondDatabase, false); n != 0 {
			t.Error("the condition has passed although the table cannot be read")
		}
		rename("elsewhere", "outbox_binding")
		rec.await(t, "the start after it", func(r *recorder) bool { return r.starts["during"] == 1 })
		relay.conds.await(t, CondDatabase, false)
		for name, want := range map[string]int{CondDatabase: 1, CondTemporal: 0, CondMisconfigured: 0} {
			if n, c := relay.conds.find(name, true); n != want {
				t.Errorf("%s was reported %d times, want %d: %+v", name, n, want, c)
			}
		}
	})
}

// TestAReadOnlyServerIsReportedOnce: the relay connects again and again, and Temporal answers all the time.
func TestAReadOnlyServerIsReportedOnce(t *testing.T) { // scenarios 9, 39
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f))
			migrated(t, s)
			dsn := s.User("SELECT, INSERT, UPDATE, DELETE")
			set := func(statement string) {
				t.Helper()
				if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			connections := func() (n int) {
				t.Helper()
				var name string
				if err := s.DB.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Connections'").Scan(&name, &n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			rec := newRecorder()
			relay := startRelayAt(t, s, dsn, rec, quick(), nil)
			enqueue(t, s, message("before"))
			rec.await(t, "a start", func(r *recorder) bool { return r.starts["before"] == 1 })
			set("SET GLOBAL read_only = 1")
			relay.conds.await(t, CondDatabase, true)
			n := connections()
			testdb.Eventually(t, "more attempts to connect", func() bool {
				relay.verifyAgain()
				return connections() > n+10
			})
			relay.verifyAgain()
			verified := func() bool {
				relay.gate.mu.Lock()
				defer relay.gate.mu.Unlock()
				return time.Since(relay.gate.verified) < stale
			}
			testdb.Eventually(t, "a verification of the namespace, which needs no write", verified)
			if n, _ := relay.conds.find(CondDatabase, true); n != 1 {
				t.Errorf("reported %d times, want once", n)
			}
			if n, _ := relay.conds.find(CondDatabase, false); n != 0 {
				t.Error("the condition has passed on a server that is read-only")
			}
			set("SET GLOBAL read_only = 0")
			relay.conds.await(t, CondDatabase, false)
			enqueue(t, s, message("after"))
			rec.await(t, "the start after it", func(r *recorder) bool { return r.starts["after"] == 1 })
			if n, _ := relay.conds.find(CondTemporal, true); n != 0 {
				t.Error("Temporal was blamed")
			}
		})
	}
}
