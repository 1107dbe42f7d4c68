package migrate

import (
	"database/sql"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/schemas"
)

func TestUpAppliesOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		applied := up(t, s.DB)
		for i, r := range applied {
			if r.Version != int64(i+1) || r.File != files()[i] {
				t.Errorf("applied %d: %+v", i, r)
			}
		}
		if len(applied) != len(files()) {
			t.Errorf("applied %d of %d", len(applied), len(files()))
		}
		testdb.Exec(t, s.DB, plainInsert)
		if again := up(t, s.DB); len(again) != 0 {
			t.Errorf("a second Up applied %v", again)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != 1 {
			t.Errorf("%d messages after a second Up", n)
		}
	})
}

// Up leaves no named lock behind in the pool.
func TestUpReleasesItsLock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		s.DB.SetMaxOpenConns(3)
		for range 5 { // would wait for the first one's lock, and run out of connections
			up(t, s.DB)
		}
		if open := s.DB.Stats().InUse; open != 0 {
			t.Errorf("%d connections are still in use", open)
		}
	})
}

func TestCheckAndList(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		check := func(have int64) {
			t.Helper()
			err := Check(t.Context(), s.DB)
			var v *VersionError
			if !errors.As(err, &v) || v.Have != have || v.Need != Latest() || !strings.Contains(err.Error(), "`oncepost migrate`") {
				t.Errorf("Check: %v, want a VersionError with %d", err, have)
			}
			list(t, s.DB, have)
		}
		check(0)
		for have := Latest() - 1; have > 0; have-- {
			up(t, s.DB)
			testdb.Exec(t, s.DB, "DELETE FROM "+VersionTable+" WHERE version_id > ?", have)
			check(have)
		}
		up(t, s.DB)
		if err := Check(t.Context(), s.DB); err != nil {
			t.Errorf("Check after Up: %v", err)
		}
		list(t, s.DB, Latest())
		// A later version's tables are good enough for this program: the others of a rolling upgrade have migrated.
		testdb.Exec(t, s.DB, "INSERT INTO "+VersionTable+" (version_id, is_applied) VALUES (?, TRUE)", Latest()+1)
		if err := Check(t.Context(), s.DB); err != nil {
			t.Errorf("Check of later tables: %v", err)
		}
		if applied, err := Up(t.Context(), s.DB); err != nil || len(applied) != 0 {
			t.Errorf("Up on later tables: %v, %v", applied, err)
		}
	})
}

// list compares List with what should be applied.
func list(t *testing.T, db *sql.DB, have int64) {
	t.Helper()
	all, err := List(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	var want []Status
	for i, file := range files() {
		want = append(want, Status{Version: int64(i + 1), File: file, Applied: int64(i+1) <= have})
	}
	if !slices.Equal(all, want) {
		t.Errorf("List: %+v, want %+v", all, want)
	}
}

// That the server cannot be asked must not look like tables that are missing.
func TestCheckOfAnUnreachableServer(t *testing.T) {
	db := testdb.Open(t, "root@tcp(127.0.0.1:1)/app")
	err := Check(t.Context(), db)
	var v *VersionError
	if err == nil || errors.As(err, &v) {
		t.Errorf("Check: %v", err)
	}
	if _, err := Up(t.Context(), db); err == nil {
		t.Error("Up: no error")
	}
	if _, err := List(t.Context(), db); err == nil {
		t.Error("List: no error")
	}
}

func TestForeignTableIsLeftAlone(t *testing.T) {
	for _, own := range ownTables {
		t.Run(own.name, func(t *testing.T) { testForeign(t, own.name) })
	}
}

func testForeign(t *testing.T, table string) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "CREATE TABLE "+table+" (id INT PRIMARY KEY, body TEXT)")
		testdb.Exec(t, s.DB, "INSERT INTO "+table+" VALUES (7, 'theirs')")
		_, err := Up(t.Context(), s.DB)
		var foreign *ForeignTableError
		if !errors.As(err, &foreign) {
			t.Fatalf("Up: %v, want a ForeignTableError", err)
		}
		if foreign.Database != s.Name || foreign.Table != table || !slices.Equal(foreign.Columns, []string{"id", "body"}) {
			t.Errorf("%+v", foreign)
		}
		if _, err := List(t.Context(), s.DB); !errors.As(err, &foreign) {
			t.Errorf("List: %v, want a ForeignTableError", err)
		}
		for _, part := range []string{s.Name, "id, body", "RENAME TABLE " + table, "CREATE DATABASE", "docs/moving.md"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the explanation lacks %q: %v", part, err)
			}
		}
		if got := testdb.Value[string](t, s.DB, "SELECT body FROM "+table+" WHERE id = 7"); got != "theirs" {
			t.Errorf("their row became %q", got)
		}
		if got := testdb.Column[string](t, s.DB, "SHOW TABLES"); !slices.Equal(got, []string{table}) {
			t.Errorf("tables %v, want only theirs", got)
		}
		// The advice works.
		testdb.Exec(t, s.DB, "RENAME TABLE "+table+" TO old_"+table)
		up(t, s.DB)
		if err := Check(t.Context(), s.DB); err != nil {
			t.Error(err)
		}
	})
}

// What refuseForeign takes for ours is what the migrations make, and all of it.
func TestOwnTablesAreTheMigrations(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		up(t, s.DB)
		want := []string{VersionTable}
		for _, own := range ownTables {
			want = append(want, own.name)
			_, columns, err := columnsOf(t.Context(), s.DB, own.name)
			if err != nil || !slices.Equal(columns, own.columns) {
				t.Errorf("%s has %v, %v; listed %v", own.name, columns, err, own.columns)
			}
			file := files()[own.since-1]
			text, err := fs.ReadFile(schemas.MySQL(), file)
			if err != nil || !strings.Contains(string(text), "CREATE TABLE IF NOT EXISTS "+own.name+" ") {
				t.Errorf("%s does not make %s (%v)", file, own.name, err)
			}
		}
		slices.Sort(want)
		got := testdb.Column[string](t, s.DB, "SHOW TABLES")
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("tables %v, listed %v", got, want)
		}
	})
}
