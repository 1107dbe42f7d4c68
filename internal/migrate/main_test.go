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

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t *testing.T, db execer, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// value reads one value.
func value[T any](t *testing.T, db queryer, query string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
	return v
}

// column reads the values of one column.
func column[T any](t *testing.T, db queryer, query string, args ...any) []T {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// session takes a session out of the pool until the end of the test.
func session(t *testing.T, db *sql.DB, set ...string) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range set {
		exec(t, conn, statement)
	}
	return conn
}

// open makes a pool that is closed at the end of the test.
func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// eventually polls until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}

func printed(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
