package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"
)

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Exec runs a statement that must succeed.
func Exec(t testing.TB, db execer, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Value reads one value.
func Value[T any](t testing.TB, db queryer, query string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
	return v
}

// Column reads the values of one column.
func Column[T any](t testing.TB, db queryer, query string, args ...any) []T {
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

// Conn takes a session out of the pool until the end of the test, and runs statements on it first.
func Conn(t testing.TB, db *sql.DB, set ...string) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	CloseAtEnd(t, conn)
	for _, statement := range set {
		Exec(t, conn, statement)
	}
	return conn
}

// Open makes a pool that is closed at the end of the test.
func Open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	CloseAtEnd(t, db)
	return db
}

// CloseAtEnd closes c at the end of the test. That must succeed; but a pool cannot say goodbye to a server that the test has
// killed.
func CloseAtEnd(t testing.TB, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, driver.ErrBadConn) {
			t.Error(err)
		}
	})
}

// Eventually polls until ok, for what cannot signal; at most 2 minutes.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 2 minutes: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
