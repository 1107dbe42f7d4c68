package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// dropTimeout bounds what is done at the end of a test, when its own context is over.
const dropTimeout = 30 * time.Second

// Schema is a database of one test.
type Schema struct {
	Flavour mysqlserver.Flavour
	Server  *mysqlserver.Server
	// Name of the database. Its character set is the server's default, which a migration must not rely on.
	Name string
	// DSN connects to it as root, by github.com/go-sql-driver/mysql, with no parameter set (parseTime=false).
	DSN string
	// DB is a pool on DSN, closed at the end of the test.
	DB *sql.DB

	t testing.TB
}

// NewSchema makes an empty database on the shared server of the flavour. It is dropped at the end of the test.
func NewSchema(t testing.TB, f mysqlserver.Flavour) *Schema {
	t.Helper()
	server, err := servers.server(f)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSchemaOn(t, server)
	t.Cleanup(s.drop) // not on an own server, which the test may have killed: its data goes with it
	return s
}

// NewSchemaOn makes an empty database on a server of OwnServer.
func NewSchemaOn(t testing.TB, server *mysqlserver.Server) *Schema {
	t.Helper()
	name := "t_" + strings.ToLower(rand.Text()[:12])
	s := &Schema{Flavour: server.Flavour(), Server: server, Name: name, DSN: server.DSN(name), t: t}
	s.DB = Open(t, s.DSN)
	Exec(t, Open(t, server.DSN("")), "CREATE DATABASE "+name)
	return s
}

// drop ends the sessions that the test has left in the database, since one with an open transaction would block the
// drop for ever, and drops it.
func (s *Schema) drop() {
	if err := s.DB.Close(); err != nil { // before its sessions are killed: it says goodbye to the server
		s.t.Error(err)
	}
	s.cleanUp(func(ctx context.Context, root *sql.DB) error {
		return errors.Join(killSessions(ctx, root, "db = ?", s.Name), dropped(ctx, root, "DATABASE "+s.Name))
	})
}

// cleanUp works on the server as root, when the test's own context is over.
func (s *Schema) cleanUp(work func(ctx context.Context, root *sql.DB) error) {
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	root, err := sql.Open("mysql", s.Server.DSN(""))
	if err == nil {
		err = errors.Join(work(ctx, root), root.Close())
	}
	if err != nil {
		s.t.Error(err)
	}
}

func dropped(ctx context.Context, root *sql.DB, what string) error {
	if _, err := root.ExecContext(ctx, "DROP "+what); err != nil {
		return fmt.Errorf("drop %s: %w", what, err)
	}
	return nil
}

// killSessions ends the sessions for which the condition holds.
func killSessions(ctx context.Context, root *sql.DB, condition string, arg any) error {
	ids, err := sessionIDs(ctx, root, condition, arg)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := root.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // MySQL takes no parameter here
		if err != nil && !isUnknownThread(err) {
			return fmt.Errorf("end session %d: %w", id, err)
		}
	}
	return nil
}

func sessionIDs(ctx context.Context, root *sql.DB, condition string, arg any) (ids []int64, err error) {
	query := "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND " + condition
	rows, err := root.QueryContext(ctx, query, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// isUnknownThread tells a session that has ended by itself meanwhile.
func isUnknownThread(err error) bool {
	const errNoSuchThread = 1094
	server, ok := asMySQL(err)
	return ok && server.Number == errNoSuchThread
}
