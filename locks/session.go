// Package locks runs functions under MySQL named locks (GET_LOCK), and jobs once in a period.
//
// A named lock belongs to the server session that took it. A pooled connection that goes back to the pool keeps its
// locks, and a job is dead for ever. So [Locker] gives its connection back only when the server has confirmed the release, and ends
// the session else; and a [Session], for those who take locks one by one and keep them, never goes back: closing it ends the server
// session, which frees every lock at once whatever else failed.
//
// Where named locks do not hold is in docs/clusters.md.
package locks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Session is one dedicated database session that holds named locks. It is not safe for concurrent use, but for Close.
type Session struct {
	conn *sql.Conn
	id   int64
}

// Open takes a connection out of the pool for good. Where the server should end a session whose client is frozen, idle
// is the time without a statement after which it does; whole seconds, at least 1 s; zero leaves the server's wait_timeout.
func Open(ctx context.Context, db *sql.DB, idle time.Duration) (*Session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("locks: connect: %w", err)
	}
	s := &Session{conn: conn}
	if err := s.setUp(ctx, idle); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Session) setUp(ctx context.Context, idle time.Duration) error {
	if idle > 0 {
		if err := s.setTimeout(ctx, max(1, int((idle+time.Second-1)/time.Second))); err != nil {
			return err
		}
	}
	if err := s.conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&s.id); err != nil {
		return fmt.Errorf("locks: read connection ID: %w", err)
	}
	return nil
}

// setTimeout sets the session's wait_timeout, in one round trip: a placeholder would take a second one.
func (s *Session) setTimeout(ctx context.Context, seconds int) error {
	if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("SET SESSION wait_timeout = %d", seconds)); err != nil {
		return fmt.Errorf("locks: set wait_timeout: %w", err)
	}
	return nil
}

// Conn is the session itself, for statements that must run on it. Do not close it.
func (s *Session) Conn() *sql.Conn { return s.conn }

// ID is the server's connection ID of the session.
func (s *Session) ID() int64 { return s.id }

// TryLock takes those of names that are free, in one statement and without waiting, and reports for each whether this
// session holds it now. Names come from [Name].
func (s *Session) TryLock(ctx context.Context, names ...string) ([]bool, error) {
	return s.each(ctx, "GET_LOCK('%s', 0)", names)
}

// Unlock releases names, and reports for each whether this session held it.
func (s *Session) Unlock(ctx context.Context, names ...string) ([]bool, error) {
	return s.each(ctx, "RELEASE_LOCK('%s')", names)
}

// HeldExpr is SQL that is 1 where any session holds name, which must come from [Name], and else 0.
func HeldExpr(name string) string { return fmt.Sprintf("IS_USED_LOCK('%s') IS NOT NULL", name) }

// Held reports for each of names whether any session holds it.
func (s *Session) Held(ctx context.Context, names ...string) ([]bool, error) {
	return s.each(ctx, "IS_USED_LOCK('%s') IS NOT NULL", names)
}

// Holder returns the connection ID of the session that holds name, or 0.
func (s *Session) Holder(ctx context.Context, name string) (int64, error) {
	var id sql.NullInt64
	if err := s.conn.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?)", name).Scan(&id); err != nil {
		return 0, fmt.Errorf("locks: IS_USED_LOCK: %w", err)
	}
	return id.Int64, nil
}

// Kill ends another session. A user may end its own without further privileges.
func (s *Session) Kill(ctx context.Context, id int64) error {
	if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err != nil { // MySQL takes no parameter there
		return fmt.Errorf("locks: end session %d: %w", id, err)
	}
	return nil
}

// nameCharacters are those of a name made by Name.
const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-:"

// each evaluates a lock function for every name in one statement and one round trip: placeholders would take a second one. Anything
// but 1 is false: NULL is an error or a lock that nobody holds, and some drivers and proxies give the answer as text.
func (s *Session) each(ctx context.Context, function string, names []string) ([]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	columns := make([]string, len(names))
	values := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range names {
		if strings.Trim(names[i], nameCharacters) != "" {
			return nil, fmt.Errorf("locks: %q is not a name made by Name", names[i])
		}
		columns[i] = fmt.Sprintf(function, names[i])
		targets[i] = &values[i]
	}
	if err := s.conn.QueryRowContext(ctx, "SELECT "+strings.Join(columns, ", ")).Scan(targets...); err != nil {
		return nil, fmt.Errorf("locks: %s: %w", function, err)
	}
	yes := make([]bool, len(names))
	for i, v := range values {
		yes[i] = v.Valid && v.String == "1"
	}
	return yes, nil
}

// Close ends the server session, so that its locks are free at once. It is idempotent, and the one method that may be
// called while another goroutine uses the session: whose calls then fail with [sql.ErrConnDone].
func (s *Session) Close() error { return End(s.conn) }

// End closes conn's network connection instead of giving it back to the pool: whatever the session held (locks, settings,
// an open transaction) ends with it.
func End(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		err = nil // that is how database/sql confirms that it dropped the connection, or that it had done so before
	}
	if cerr := conn.Close(); cerr != nil && !errors.Is(cerr, sql.ErrConnDone) {
		err = errors.Join(err, cerr)
	}
	return err
}
