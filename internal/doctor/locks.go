package doctor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"strings"
)

// namedLocks takes a lock in one session, which another must not get then, and looks whether both are with one server, each as
// itself from one statement to the next.
func (d *database) namedLocks(ctx context.Context) ([]Finding, error) {
	var sessions [2]*sql.Conn
	for i := range sessions {
		conn, err := d.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer end(conn) // and with it the lock
		sessions[i] = conn
	}
	name := "oncepost:doctor:" + strings.ToLower(rand.Text())
	var first, second seen
	for i, of := range []*seen{&first, &second} {
		if err := d.look(ctx, sessions[i], of, name); err != nil {
			return nil, err
		}
	}
	steady, err := steady(ctx, sessions, [2]int64{first.session, second.session}, name)
	if err != nil {
		return nil, err
	}
	const do = "let oncepost, and all jobs under locks, reach one server directly, or through a proxy that keeps a session together: docs/clusters.md"
	const so = "named locks (GET_LOCK) do not hold here, so that a job may run twice at a time, and relays start each other's messages, which Temporal refuses: "
	switch {
	case first.server != second.server:
		return find(Error, do, so+"two sessions are with two servers")
	case !first.got.Valid || first.got.Int64 != 1:
		return find(Error, do, so+"the server gives nobody a lock that is free")
	case second.got.Valid && second.got.Int64 == 1:
		return find(Error, do, so+"two sessions were given the same lock")
	case !steady:
		return find(Error, do, so+"a session is another one from one statement to the next")
	}
	return ok("named locks hold: of two sessions one gets the lock, and both are with one server")
}

// seen is what a session said of itself, and whether it got the lock.
type seen struct {
	server  string
	session int64
	got     sql.NullInt64
}

func (d *database) look(ctx context.Context, conn *sql.Conn, s *seen, lock string) error {
	state, err := d.kind.State(ctx, conn)
	if err != nil {
		return err
	}
	s.server = state.ID
	return conn.QueryRowContext(ctx, "SELECT CONNECTION_ID(), GET_LOCK(?, 0)", lock).Scan(&s.session, &s.got)
}

// steady reports whether both sessions stay the ones that they were, and the first the lock's holder. A proxy that shares out its
// own sessions may give the same one back by chance, but not again and again.
func steady(ctx context.Context, sessions [2]*sql.Conn, were [2]int64, lock string) (bool, error) {
	for range 5 {
		for i, conn := range sessions {
			var is int64
			var holder sql.NullInt64
			if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID(), IS_USED_LOCK(?)", lock).Scan(&is, &holder); err != nil {
				return false, err
			}
			if is != were[i] || holder.Int64 != were[0] {
				return false, nil
			}
		}
	}
	return true, nil
}

// end ends a session instead of giving it back to the pool: its settings are not those of the others.
func end(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // which is what it returns
}
