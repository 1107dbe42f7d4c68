package migrate

import (
	"database/sql"
	"fmt"
	"maps"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// complete compares the tables with those of an undisturbed Up.
func complete(t *testing.T, s *testdb.Schema) {
	t.Helper()
	if err := Check(t.Context(), s.DB); err != nil {
		t.Errorf("Check: %v", err)
	}
	list(t, s.DB, Latest())
	undisturbed := testdb.NewSchema(t, s.Flavour)
	up(t, undisturbed.DB)
	if got, want := definitions(t, s), definitions(t, undisturbed); !maps.Equal(got, want) {
		t.Errorf("tables\n%v\nwant\n%v", got, want)
	}
	if n := testdb.Value[int](t, s.DB, sentinels); n != outbox.Shards {
		t.Errorf("%d sentinels", n)
	}
	testdb.Exec(t, s.DB, plainInsert)
	if again := up(t, s.DB); len(again) != 0 {
		t.Errorf("a further Up applied %v", again)
	}
}

// A process may be killed between any two statements of an Up. Each of the states that this leaves is made here, and the
// next Up completes it. (scenario 12)
func TestUpCompletesWhatIsHalfDone(t *testing.T) {
	type state struct {
		name string
		make func(t *testing.T, db *sql.DB)
	}
	states := []state{
		{"the version table without any row", func(t *testing.T, db *sql.DB) {
			testdb.Exec(t, db, versionTable())
		}},
		{"the first table without a version table", func(t *testing.T, db *sql.DB) {
			testdb.Exec(t, db, readMigration(t, files()[0]))
		}},
		{"the first table and the version table without any row", func(t *testing.T, db *sql.DB) {
			testdb.Exec(t, db, versionTable())
			testdb.Exec(t, db, readMigration(t, files()[0]))
		}},
		{"half of the sentinels", func(t *testing.T, db *sql.DB) {
			recorded(t, db, 1)
			testdb.Exec(t, db, readMigration(t, files()[1]))
			testdb.Exec(t, db, "DELETE FROM outbox_messages WHERE shard % 2 = 0")
		}},
		{"a version recorded twice", func(t *testing.T, db *sql.DB) { // by a statement that outlived its process
			recorded(t, db, 2)
			testdb.Exec(t, db, "INSERT INTO "+VersionTable+" (version_id, is_applied) VALUES (2, TRUE)")
		}},
	}
	for done := range files() {
		states = append(states,
			state{fmt.Sprintf("%d recorded", done), func(t *testing.T, db *sql.DB) { recorded(t, db, done) }},
			state{fmt.Sprintf("%d recorded, the next applied", done), func(t *testing.T, db *sql.DB) {
				recorded(t, db, done)
				testdb.Exec(t, db, readMigration(t, files()[done]))
			}})
	}
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
				state.make(t, s.DB)
				up(t, s.DB)
				complete(t, s)
			})
		})
	}
}

// versionTable is the statement that makes the record of versions.
func versionTable() string {
	return fmt.Sprintf("CREATE TABLE %s (id BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT, version_id BIGINT NOT NULL, "+
		"is_applied BOOLEAN NOT NULL, tstamp TIMESTAMP NULL DEFAULT NOW(), PRIMARY KEY (id))", VersionTable)
}

// recorded applies and records the first n migrations.
func recorded(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	testdb.Exec(t, db, versionTable())
	testdb.Exec(t, db, "INSERT INTO "+VersionTable+" (version_id, is_applied) VALUES (0, TRUE)")
	for _, file := range files()[:n] {
		testdb.Exec(t, db, readMigration(t, file))
		testdb.Exec(t, db, "INSERT INTO "+VersionTable+" (version_id, is_applied) VALUES (?, TRUE)", number(file))
	}
}
