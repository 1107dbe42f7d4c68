package outbox

import (
	"context"
	"database/sql"
	"hash/crc32"
	"os"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // for the tests' own pools

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// eachMigrated runs test on a database with oncepost's tables, on both servers.
func eachMigrated(t *testing.T, test func(t *testing.T, s *testdb.Schema)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrateUp(t, s.DB)
		test(t, s)
	})
}

func migrateUp(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := migrate.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
}

// begin opens a transaction that is rolled back at the end of the test, unless the test has ended it.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rollback(tx, nil); err != nil {
			t.Error(err)
		}
	})
	return tx
}

func commit(t *testing.T, tx *sql.Tx) {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// enqueue commits messages in a transaction of their own.
func enqueue(t *testing.T, db *sql.DB, ms ...Message) []string {
	t.Helper()
	tx := begin(t, db)
	ids, err := EnqueueMany(t.Context(), tx, ms)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, tx)
	return ids
}

// relay is a session as the relay has it.
type relay struct {
	*Reader
	*Deleter
	conn *sql.Conn
}

func newRelay(t *testing.T, db *sql.DB) relay {
	t.Helper()
	conn := testdb.Conn(t, db)
	kind, err := Prepare(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return relay{Reader: Table{}.NewReader(conn, kind), Deleter: Table{}.NewDeleter(conn, kind), conn: conn}
}

// all reads every message.
func (r relay) all(t *testing.T) []Row {
	t.Helper()
	var positions []Position
	for shard := range Shards {
		positions = append(positions, Position{Shard: uint8(shard), Limit: 10_000})
	}
	page, err := r.Page(t.Context(), Glance{}, positions...)
	if err != nil {
		t.Fatal(err)
	}
	return page.Rows
}

// byID reads every message.
func (r relay) byID(t *testing.T) map[string]Row {
	t.Helper()
	rows := map[string]Row{}
	for _, row := range r.all(t) {
		rows[row.MessageID] = row
	}
	return rows
}

// keys are those of every message.
func (r relay) keys(t *testing.T) []Key {
	t.Helper()
	var keys []Key
	for _, row := range r.all(t) {
		keys = append(keys, row.Key)
	}
	return keys
}

func pending(t *testing.T, db *sql.DB) int {
	t.Helper()
	n, err := Table{}.Pending(t.Context(), db, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// within fails a call that does not return soon: a call that waits for a lock would hang the test otherwise.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func message(id string) Message { return Message{ID: id, EventType: "welcome", Payload: json0} }

// json0 is a payload that says nothing.
var json0 = []byte(`{}`)

// shardOf is the shard of an ID outside the express lane.
func shardOf(id string) uint8 { return uint8(crc32.ChecksumIEEE([]byte(id)) % FirstExpressShard) }
