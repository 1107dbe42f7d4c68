package migrate

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // what child opens

	"github.com/oncepost/oncepost/internal/testdb"
)

// childEnv holds the DSN that a copy of the test binary migrates instead of running tests.
const childEnv = "ONCEPOST_TEST_MIGRATE_DSN"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childEnv); dsn != "" {
		if err := child(dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testdb.Main(m))
}

func child(dsn string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = Up(ctx, db)
	return err
}

// eachMigrated runs test on a database with oncepost's tables, on both servers.
func eachMigrated(t *testing.T, test func(t *testing.T, s *testdb.Schema)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		up(t, s.DB)
		test(t, s)
	})
}

func up(t *testing.T, db *sql.DB) []Result {
	t.Helper()
	applied, err := Up(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func printed(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
