package starter

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
)

// mostConnections: the owner's session, the reader's, the deleters', those that load large rows, and one that reads the
// remembered namespace.
const mostConnections = 1 + 1 + deleters + maxLoads + 1

// TestConnectionsAreBounded: large rows are read one by one, and each on a connection; but never on more than so many.
func TestConnectionsAreBounded(t *testing.T) { // scenarios 7, 40
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		dsn := s.User("SELECT, INSERT, UPDATE, DELETE")
		account, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		// On the server, whatever the pool believes.
		mine := "SELECT COUNT(*) FROM information_schema.processlist WHERE user = '" + account.User + "'"
		var most atomic.Int64
		look := func() {
			raise(&most, int64(testdb.Value[int](t, s.DB, mine)))
		}
		ms := messages("large", 200)
		for i := range ms {
			ms[i].Payload = strings.Repeat("x", 9<<10)
		}
		enqueue(t, s, ms...)
		rec := newRecorder()
		rec.away = true // read, but not start
		rec.answer = answerAfter(50 * time.Millisecond)
		relay := startRelayAt(t, s, dsn, rec, quick(), nil)
		testdb.Eventually(t, "the rows are read", func() bool {
			relay.rows.mu.Lock()
			defer relay.rows.mu.Unlock()
			return relay.rows.lanes[others].len() == 200
		})

		// While another session has locked the table, every load hangs: so all that begin are there together.
		lock := testdb.Conn(t, s.DB, "LOCK TABLES outbox_messages WRITE")
		rec.set(func(r *recorder) { r.away = false })
		testdb.Eventually(t, "loads that hang", func() bool {
			return testdb.Value[int](t, s.DB, mine+" AND state LIKE '%metadata lock%' AND info LIKE 'SELECT CAST(payload%'") >= maxLoads
		})
		for range 20 {
			look()
		}
		testdb.Exec(t, lock, "UNLOCK TABLES")
		testdb.Eventually(t, "all starts", func() bool { look(); return rec.total() == 200 })
		if n := most.Load(); n > mostConnections {
			t.Errorf("%d connections at once, want at most %d", n, mostConnections)
		}
		if n := relay.db.Stats().OpenConnections; n > mostConnections {
			t.Errorf("the pool has %d connections", n)
		}
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
	})
}

func itoa(n int64) string { return fmt.Sprint(n) }
