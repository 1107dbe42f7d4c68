package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Kind is the dialect a session speaks.
type Kind int

// The two dialects. MySQL includes what calls itself MySQL (Aurora, Percona Server).
const (
	MySQL Kind = iota
	MariaDB
)

// KindOf is the dialect of a server whose VERSION() is given.
func KindOf(version string) Kind {
	if strings.Contains(version, "MariaDB") {
		return MariaDB
	}
	return MySQL
}

// ServerState is who answers on a session. After a failover a pool can hold sessions to the old and the new primary.
type ServerState struct {
	ID       string // differs between servers
	ReadOnly bool   // a demoted primary: it answers reads for ever and changes nothing
}

// StateExprs are the SQL for the two fields of ServerState.
func (k Kind) StateExprs() (id, readOnly string) {
	if k == MariaDB { // has no UUID of its own in 10.11
		return "CONCAT_WS(':', @@hostname, @@port, @@server_id, @@datadir)", "(@@global.read_only OR @@innodb_read_only)"
	}
	return "@@server_uuid", "(@@global.read_only OR @@global.super_read_only OR @@innodb_read_only)"
}

// Prepare makes conn a session of the relay: READ COMMITTED, so that no read or delete takes a gap lock that would keep
// a producer from inserting; UTC, so that times mean the same to all; a strict sql_mode; utf8mb4, since the server would
// send '?' for every character that the session's character set lacks, and the payload must arrive byte for byte. And the
// server itself ends a statement that its client has given up: under a long table lock they would pile up.
func Prepare(ctx context.Context, conn *sql.Conn) (Kind, error) {
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return 0, fmt.Errorf("outbox: read the server's version: %w", err)
	}
	kind, limit := KindOf(version), "max_execution_time = 10000"
	if kind == MariaDB {
		limit = "max_statement_time = 10"
	}
	for _, set := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, NAMES utf8mb4",
		"SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5, " + limit,
	} {
		if _, err := conn.ExecContext(ctx, set); err != nil {
			return 0, fmt.Errorf("outbox: %s: %w", set, err)
		}
	}
	return kind, nil
}

// State asks who answers on q.
func (k Kind) State(ctx context.Context, q Queryer) (s ServerState, err error) {
	id, readOnly := k.StateExprs()
	err = q.QueryRowContext(ctx, "SELECT "+id+", "+readOnly).Scan(&s.ID, &s.ReadOnly)
	return s, err
}
