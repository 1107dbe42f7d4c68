package doctor

import (
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// opening returns an OpenDB for a DSN, as the commands open it.
func opening(dsn string) func() (*sql.DB, error) {
	return func() (*sql.DB, error) { return mysqldb.Open(mysqldb.Config{DSN: dsn}) }
}

// plainly opens it without oncepost's own settings: what a proxy that drops SET gives.
func plainly(dsn string) func() (*sql.DB, error) {
	return func() (*sql.DB, error) { return sql.Open("mysql", dsn) }
}

func migrated(t *testing.T, s *testdb.Schema) {
	t.Helper()
	if _, err := migrate.Up(t.Context(), s.DB); err != nil {
		t.Fatal(err)
	}
}

// mysqlOf makes the checks of MySQL alone.
func mysqlOf(t *testing.T, cfg Config) []Finding {
	t.Helper()
	return checkMySQL(t.Context(), cfg.withDefaults())
}

// wants fails unless a check came to this, in these words.
func wants(t *testing.T, found []Finding, name string, s Severity, words ...string) {
	t.Helper()
	var have []string
	for _, f := range found {
		if f.Check != name {
			continue
		}
		have = append(have, f.Severity.String()+": "+f.Text)
		if f.Severity == s && containsAll(f.Text+" "+f.Do, words) {
			if s > OK && f.Do == "" {
				t.Errorf("%s says nothing of what to do", name)
			}
			return
		}
	}
	t.Errorf("%s has %q, want %s with %q", name, have, s, words)
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// healthy fails for everything above a note.
func healthy(t *testing.T, found []Finding) {
	t.Helper()
	if len(found) == 0 {
		t.Error("nothing was found")
	}
	for _, f := range found {
		if f.Severity > Note {
			t.Errorf("%s %s: %s", f.Severity, f.Check, f.Text)
		}
	}
}

// only fails for everything above a note but what is named.
func only(t *testing.T, found []Finding, names ...string) {
	t.Helper()
	for _, f := range found {
		if f.Severity > Note && !strings.Contains(" "+strings.Join(names, " ")+" ", " "+f.Check+" ") {
			t.Errorf("%s %s: %s", f.Severity, f.Check, f.Text)
		}
	}
}
