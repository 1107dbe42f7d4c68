package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// Config of a Locker. The zero value is good.
type Config struct {
	// Report is told of each clean-up that did not go as it should. It is called in the goroutine of With, or of the keep-alive,
	// and must return soon. Default: slog.Default() at ERROR.
	Report func(Report)
	// Timeout is how long a holder may be silent: the server ends the session of one that is frozen or cut off, and the lock is
	// free. The context of its function ends before that, at two thirds. Whole seconds, at least 3 s; default 15 s.
	//
	// The server is told 100 ms after the lock was taken, so that a short function costs no statement for it: of a process that
	// freezes within the first 100 ms the lock stays taken for the server's own wait_timeout.
	Timeout time.Duration
	// Scope is part of each lock's name: named locks belong to the whole server. Default: the pool's current database.
	Scope string
}

const (
	defaultTimeout = 15 * time.Second
	leastTimeout   = 3 * time.Second
)

// Locker runs functions under named locks. It is safe for concurrent use.
type Locker struct {
	db      *sql.DB
	timeout time.Duration
	tell    func(Report)
	scope   atomic.Pointer[string] // nil until it is known
}

// New returns a Locker on a pool of one MySQL or MariaDB server. It asks nothing of the server yet. A wait is made of statements that
// last a second: a readTimeout in the pool's DSN, a max_execution_time (MySQL) and a max_statement_time (MariaDB) must be longer, or 0.
func New(db *sql.DB, cfg Config) (*Locker, error) {
	switch {
	case db == nil:
		return nil, errors.New("locks: a pool is required")
	case cfg.Timeout == 0:
		cfg.Timeout = defaultTimeout
	case cfg.Timeout < leastTimeout || cfg.Timeout%time.Second != 0:
		return nil, fmt.Errorf("locks: Timeout is %s, want whole seconds, at least %s", cfg.Timeout, leastTimeout)
	}
	if cfg.Report == nil {
		cfg.Report = func(r Report) { slog.Default().LogAttrs(context.Background(), slog.LevelError, r.Text(), r.Attrs()...) }
	}
	l := &Locker{db: db, timeout: cfg.Timeout, tell: cfg.Report}
	if cfg.Scope != "" {
		l.scope.Store(&cfg.Scope)
	}
	return l, nil
}

// With runs fn while this process holds the lock of that key (see [Key]), and returns the very error that fn returned.
//
// wait is how long to wait for it, in whole seconds on the server's side; 0 does not wait, less than 0 waits until ctx ends. Where
// the lock is not to be had, the error is a [*NotAcquiredError] and fn does not run; another error says why nobody can tell.
//
// fn's context ends when the lock is lost, with a [*LostError] as its cause, and a [Report] is made. A named lock cannot keep a holder
// that does not heed it from writing: what must never be written twice needs a UNIQUE key or a token as well.
//
// The lock is taken on a connection of its own, which goes back to the pool only when the server has confirmed the release. A With
// within fn, with a context that comes from fn's, uses the same session: one connection is enough however deep, and the server
// finds a deadlock between two such. Statements of goroutines that share a session take turns, and a wait for a lock takes up to a
// second of each turn. A lock is not re-entrant: for one that the session holds already the error is a
// *NotAcquiredError at once.
func (l *Locker) With(ctx context.Context, key string, wait time.Duration, fn func(ctx context.Context) error) error {
	return l.WithAll(ctx, []string{key}, wait, fn)
}

// WithAll is With for several locks on one session, taken in one order by everybody, so that two callers with the same keys cannot
// wait for each other. wait is for all of them together. A key given twice counts once.
func (l *Locker) WithAll(ctx context.Context, keys []string, wait time.Duration, fn func(ctx context.Context) error) error {
	return l.under(ctx, keys, wait, func(ctx context.Context, h *hold) error {
		h.begin()
		return fn(ctx)
	})
}

// under runs fn under locks, and with the session that holds them.
func (l *Locker) under(ctx context.Context, keys []string, wait time.Duration, fn func(ctx context.Context, h *hold) error) error {
	all, err := l.locks(ctx, keys)
	if err != nil {
		return err
	}
	h, nested := l.holding(ctx)
	if !nested {
		if h, ctx, err = l.open(ctx); err != nil {
			return err
		}
		defer h.close() // whatever comes, a panic of fn too
	}
	if err := h.takeAll(ctx, all, wait); err != nil {
		return err
	}
	if nested {
		defer h.giveBack(all)
	}
	return fn(ctx, h)
}

// lock is one named lock: as the caller calls it, and the server.
type lock struct{ key, name string }

func (l *Locker) locks(ctx context.Context, keys []string) (all []lock, err error) {
	scope, err := l.scoped(ctx)
	if err != nil {
		return nil, err
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	for _, key := range keys {
		if key == "" {
			return nil, errors.New("locks: a lock needs a key")
		}
		all = append(all, lock{key, Name(scope, key)})
	}
	if len(all) == 0 {
		return nil, errors.New("locks: a lock needs a key")
	}
	return all, nil
}

// scoped is the scope, asked for once, or by several at first.
func (l *Locker) scoped(ctx context.Context) (string, error) {
	if scope := l.scope.Load(); scope != nil {
		return *scope, nil
	}
	var database sql.NullString
	if err := l.db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return "", fmt.Errorf("locks: read the current database: %w", err)
	}
	if database.String == "" {
		return "", errors.New("locks: the pool has no current database; name one in the DSN, or set Config.Scope")
	}
	l.scope.Store(&database.String)
	return database.String, nil
}
