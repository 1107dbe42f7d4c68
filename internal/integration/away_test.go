package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

// TestTemporalIsAway: scenario 4. It goes while the relay works, or has never answered; it closes connections, or takes them
// and says nothing. Messages wait, 1,000 of them in the first case, and all start when it is back.
func TestTemporalIsAway(t *testing.T) {
	t.Parallel() // it waits, most of the time
	temporal := newTemporal(t, attributes)
	for i, c := range []struct {
		name   string
		mode   testnet.Mode
		before int64 // started before it goes
		rows   int
	}{
		{"it refuses connections in the middle of the work", testnet.Refuse, 100, 400},
		{"it goes silent in the middle of the work", testnet.Silent, 100, 400},
		{"it takes connections and never answers", testnet.Silent, 0, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			migrated(t, func(t *testing.T, s *testdb.Schema) {
				proxy := testnet.New(t, temporal.FrontendAddr)
				if c.before == 0 {
					proxy.Set(c.mode)
				}
				ns, _ := newNamespace(t, temporal, s, fmt.Sprintf("away-%d", i), 24*time.Hour)
				client := dial(t, proxy.Addr(), ns)
				ms := make([]outbox.Message, c.rows)
				for i := range ms {
					ms[i] = welcome(fmt.Sprintf("m:%03d", i))
				}
				enqueue(t, s, ms...)
				relay, conds, _ := runRelay(t, s.DSN, client, ns, starter.Config{StartTimeout: time.Second})
				testdb.Eventually(t, "a part has started", func() bool { return relay.Stats().Started >= c.before })
				proxy.Set(c.mode)
				conds.await(t, starter.CondTemporal)
				testdb.Eventually(t, "no start is in flight", func() bool { return relay.Stats().InFlight == 0 })
				begun := func() int64 { // an answer may be late, and the start made again
					st := relay.Stats()
					return st.Started + st.Duplicates
				}
				started := begun()
				if started == int64(c.rows) {
					t.Fatal("all had started before Temporal went")
				}
				for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					if n := failed(t, s); n != 0 {
						t.Fatalf("%d messages were failed", n)
					}
					if n := pending(t, s); n < c.rows-int(started) {
						t.Fatalf("%d rows wait, and only %d have started", n, started)
					}
				}
				if n := begun(); n != started {
					t.Errorf("%d starts while Temporal was away", n-started)
				}
				proxy.Set(testnet.Pass)
				testdb.Eventually(t, "an empty outbox", func() bool { return pending(t, s) == 0 })
				countWorkflows(t, dial(t, temporal.FrontendAddr(), ns), int64(c.rows), "WorkflowType = 'welcome'")
				if n := failed(t, s); n != 0 {
					t.Errorf("%d messages were failed", n)
				}
				if st := relay.Stats(); st.Failed != 0 || st.Deleted != int64(c.rows) {
					t.Errorf("stats: %+v", st)
				}
			})
		})
	}
}
