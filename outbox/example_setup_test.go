package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	_ "github.com/go-sql-driver/mysql" // what testdb opens

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/testdb"
)

// exampleTB is what testdb needs of a test, for an Example, which has none.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                   {}
func (*exampleTB) Context() context.Context  { return context.Background() }
func (tb *exampleTB) Cleanup(f func())       { tb.cleanups = append(tb.cleanups, f) }
func (*exampleTB) Error(args ...any)         { panic(fmt.Sprint(args...)) }
func (*exampleTB) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (*exampleTB) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (*exampleTB) FailNow()                  { panic("example failed") }

func (tb *exampleTB) done() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}

// openExample makes a database with oncepost's tables and a table companies. done drops it.
func openExample() (db *sql.DB, done func()) {
	tb := &exampleTB{}
	s := testdb.NewSchema(tb, testdb.Flavours()[0])
	migrateExample(tb, s)
	makeCompanies(tb, s)
	return s.DB, tb.done
}

// openTwo makes a database with a table companies, and another one on the same server with oncepost's tables.
func openTwo() (app *sql.DB, oncepost string, done func()) {
	tb := &exampleTB{}
	own, other := testdb.NewSchema(tb, testdb.Flavours()[0]), testdb.NewSchema(tb, testdb.Flavours()[0])
	migrateExample(tb, other)
	makeCompanies(tb, own)
	return own.DB, other.Name, tb.done
}

func migrateExample(tb *exampleTB, s *testdb.Schema) {
	if _, err := migrate.Up(tb.Context(), s.DB); err != nil {
		tb.Fatal(err)
	}
}

func makeCompanies(tb *exampleTB, s *testdb.Schema) {
	if _, err := s.DB.ExecContext(tb.Context(), "CREATE TABLE companies (id VARCHAR(20) PRIMARY KEY, name VARCHAR(100))"); err != nil {
		tb.Fatal(err)
	}
}
