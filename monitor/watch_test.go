package monitor

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// One process that cannot reach Temporal is heard of once, and as long as it cannot nobody says that it is over.
func TestWhatOneProcessSeesAloneLasts(t *testing.T) {
	eachWorld(t, func(w *world) {
		partitioned := &fakeTemporal{counts: map[string]int64{}, away: true}
		w.watch(func(c *Config) { c.Client = partitioned })
		w.watch()
		w.people.await(w.T, CondTemporal, 1, 0)
		time.Sleep(2 * soon) // long enough for the other to think that it is over
		if begun, over := w.people.of(CondTemporal); begun != 1 || over != 0 {
			w.Errorf("it began %d times and was over %d times", begun, over)
		}
		partitioned.set(func() { partitioned.away = false })
		w.people.await(w.T, CondTemporal, 1, 1)
	})
}

// A process that dies while it tells is relieved; one that reaches nobody tries again.
func TestATellerThatFailsIsRelieved(t *testing.T) {
	eachWorld(t, func(w *world) {
		hangs := make(chan struct{})
		w.watch(func(c *Config) {
			c.Tell = func(context.Context, Notice) error { <-hangs; return errors.New("it has died") }
		})
		w.Cleanup(func() { close(hangs) }) // before the Watch ends, which waits for it
		w.kill(RoleRelay)
		testdb.Eventually(w, "the first one tells", func() bool {
			return testdb.Value[int](w, w.s.DB, "SELECT COUNT(*) FROM ops_conditions WHERE telling_ends_at > NOW(6)") == 1
		})
		w.people.set(true)
		w.watch()
		testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6)")
		testdb.Eventually(w, "the second one tells", func() bool {
			return testdb.Value[int](w, w.s.DB, "SELECT COUNT(*) FROM ops_conditions WHERE telling_ends_at > NOW(6)") == 1
		})
		w.people.set(false)
		testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6)")
		w.people.await(w.T, CondNoRelay, 1, 0)
	})
}

// What has passed before anybody could be told is told to nobody.
func TestWhatNobodyWasToldOfEndsQuietly(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.people.set(true)
		w.watch()
		w.kill(RoleRelay)
		rows := func(want int) {
			testdb.Eventually(w, "rows", func() bool { return testdb.Value[int](w, w.s.DB, "SELECT COUNT(*) FROM ops_conditions") == want })
		}
		rows(1)
		w.begin(RoleRelay)
		testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6)")
		rows(0)
		if len(w.people.names()) != 0 {
			w.Errorf("people heard of %q", w.people.names())
		}
	})
}

// While the database is away each process tells of that once, by itself, and nothing is told of what cannot be seen. A server that
// takes no writes counts as away.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testdb.NewSchemaOn(t, testdb.OwnServer(t, f)))
			w.watch()
			w.watch()
			silent := w.watch(func(c *Config) { c.Tell = nil })
			testdb.Eventually(t, "all see that all is well", func() bool { s := silent.State(); return s != nil && s.Database.OK })
			testdb.Exec(t, w.s.DB, "SET GLOBAL read_only = ON")
			w.people.await(t, CondDatabase, 2, 0)
			testdb.Eventually(t, "the third shows it", func() bool { return len(silent.State().Conditions) == 1 })
			testdb.Exec(t, w.s.DB, "SET GLOBAL read_only = OFF")
			w.people.await(t, CondDatabase, 2, 1) // they can agree again
			if err := w.s.Server.Kill(); err != nil {
				t.Fatal(err)
			}
			w.people.await(t, CondDatabase, 4, 1)
			w.temporal.set(func() { w.temporal.away = true })
			w.people.await(t, CondTemporal, 2, 0)
			w.temporal.set(func() { w.temporal.away = false })
			w.people.await(t, CondTemporal, 2, 2)
			testdb.Restart(t, w.s.Server)
			w.people.await(t, CondDatabase, 4, 2)
			if begun, _ := w.people.of(CondNoRelay); begun != 0 {
				t.Error("people heard that there is no relay, of which nobody could know")
			}
		})
	}
}

// A Watch that was frozen has seen nothing meanwhile, and draws no conclusion from it.
func TestAFrozenProcessRaisesNothing(t *testing.T) {
	eachWorld(t, func(w *world) {
		watch, err := NewWatch(Config{DB: w.s.DB, Client: w.temporal, Logger: discard, Thresholds: quick, Tell: w.people.tell})
		if err != nil {
			w.Fatal(err)
		}
		watch.look(w.Context())
		w.temporal.set(func() { w.temporal.away = true })
		watch.look(w.Context())
		watch.looked = time.Now().Add(-time.Hour)
		for k := range watch.memory.held {
			watch.memory.held[k].since = time.Now().Add(-time.Hour)
		}
		watch.look(w.Context())
		if s := watch.State(); len(s.Conditions) != 0 {
			w.Errorf("%+v", s.Conditions)
		}
	})
}

// A heartbeat goes out while the process looks, and its URL into no log.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	var beats atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { beats.Add(1) }))
	t.Cleanup(server.Close)
	s := testdb.NewSchema(t, testdb.Flavours()[0])
	w := newWorld(t, s)
	w.watch(func(c *Config) { c.Heartbeat = server.URL + "/secret" })
	testdb.Eventually(t, "a heartbeat", func() bool { return beats.Load() == 1 })

	p, err := newPulse("http://127.0.0.1:1/secret", discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ask(t.Context()); err == nil || containsSecret(err) {
		t.Errorf("%v", err)
	}
	if _, err := newPulse("secret", discard); err == nil || containsSecret(err) {
		t.Errorf("%v", err)
	}
}
