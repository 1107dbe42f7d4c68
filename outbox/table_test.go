package outbox

import (
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// A table in another database of the server takes part in the caller's transaction.
func TestTableInAnotherDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, app *testdb.Schema) {
		own := testdb.NewSchema(t, app.Flavour)
		migrateUp(t, own.DB)
		testdb.Exec(t, app.DB, "CREATE TABLE companies (name VARCHAR(20) PRIMARY KEY) ENGINE=InnoDB")
		table := Table{Database: own.Name}
		for _, end := range []string{"rollback", "commit"} {
			tx := begin(t, app.DB)
			testdb.Exec(t, tx, "INSERT INTO companies VALUES ('one')")
			if _, err := table.Enqueue(t.Context(), tx, message("one")); err != nil {
				t.Fatal(err)
			}
			if err := map[string]func() error{"rollback": tx.Rollback, "commit": tx.Commit}[end](); err != nil {
				t.Fatal(err)
			}
			want := strings.Count(end, "commit")
			if n := testdb.Value[int](t, app.DB, "SELECT COUNT(*) FROM companies"); n != want {
				t.Errorf("after the %s: %d companies", end, n)
			}
			if n := pending(t, own.DB); n != want {
				t.Errorf("after the %s: %d messages", end, n)
			}
		}
		if _, err := table.Enqueue(t.Context(), app.DB, message("one")); err == nil {
			t.Error("the same ID again: no error")
		} else {
			checkDuplicate(t, err, "one")
		}
		readFromElsewhere(t, app, table)
	})
}

// readFromElsewhere is the relay's work on a table of another database.
func readFromElsewhere(t *testing.T, app *testdb.Schema, table Table) {
	t.Helper()
	conn := testdb.Conn(t, app.DB)
	kind, err := Prepare(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	r := relay{Reader: table.NewReader(conn, kind), Deleter: table.NewDeleter(conn, kind), conn: conn}
	rows := r.all(t)
	if len(rows) != 1 || rows[0].MessageID != "one" {
		t.Fatalf("rows %v", rows)
	}
	if err := table.Load(t.Context(), conn, &rows[0]); err != nil {
		t.Error(err)
	}
	if missing, err := table.RestoreSentinels(t.Context(), conn); missing != 0 || err != nil {
		t.Errorf("sentinels: %d, %v", missing, err)
	}
	if moved, err := r.MoveToFailed(t.Context(), rows[0].Key, ReasonNeverStarts, ""); err != nil || !moved {
		t.Errorf("moved=%v, %v", moved, err)
	}
	if n, err := table.Pending(t.Context(), conn, 10); n != 0 || err != nil {
		t.Errorf("%d left, %v", n, err)
	}
}

func TestTableNameIsQuoted(t *testing.T) {
	for database, want := range map[string]string{
		"": "t", "my-app": "`my-app`.t", "a`b": "`a``b`.t",
	} {
		if got := (Table{Database: database}).name("t"); got != want {
			t.Errorf("%q: %s, want %s", database, got, want)
		}
	}
}
