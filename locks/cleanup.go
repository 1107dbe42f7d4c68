package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Points of a Report: what did not go as it should. At the first three what ran under the lock may have run twice at a time.
const (
	// PointReleaseFailed: RELEASE_LOCK was answered with an error, or not in time. The session is ended, which frees the lock.
	PointReleaseFailed = "release_failed"
	// PointLockLost: the session does not hold the lock that it took.
	PointLockLost = "lock_lost"
	// PointConnectionGone: the session ended, or cannot be reached, while it held the lock.
	PointConnectionGone = "connection_gone"
	// PointSessionNotEnded: a session that may hold the lock was given up, and was not seen to have ended, KILL or not. The lock may
	// stay taken until the server ends it.
	PointSessionNotEnded = "session_not_ended"
)

// Report tells of a clean-up that did not go as it should.
type Report struct {
	Point string
	// Keys of the locks that are concerned.
	Keys []string
	// Session is the server's connection ID, 0 where it is not known.
	Session int64
	Err     error
}

// Text says in a sentence what happened, and what follows.
func (r Report) Text() string {
	switch r.Point {
	case PointReleaseFailed:
		return "a named lock could not be released; its session is ended, which frees it"
	case PointLockLost:
		return "a named lock was lost while a function ran under it: another may have run at the same time, and data may have been written twice"
	case PointConnectionGone:
		return "the session of a named lock has gone while a function ran under it: another may have run at the same time, and data may have been written twice"
	}
	return "the session of a named lock may still hold it: look with SELECT IS_USED_LOCK, and end it with KILL"
}

// Attrs are the rest of the report, for a log.
func (r Report) Attrs() []slog.Attr {
	return []slog.Attr{slog.String("point", r.Point), slog.Any("locks", r.Keys), slog.Int64("session", r.Session), slog.Any("error", r.Err)}
}

const (
	cleanUp  = 5 * time.Second // all of it
	endTime  = time.Second     // for the server to notice that a session has ended
	lookAway = 5 * time.Millisecond
)

// errClosed is what a context gets that outlives its function.
var errClosed = errors.New("locks: the function that had this context has returned")

// close gives all locks back, and the connection to the pool where the server has confirmed that; else it ends the session.
func (h *hold) close() {
	h.rest()
	defer h.cancel(context.Canceled)
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp) // the caller's own may be over
	defer cancel()
	h.mu.Lock()
	defer h.unlock()
	h.release(ctx, h.held)
	if h.guarded && h.lost == nil {
		if err := h.set(ctx, h.timeout); err != nil {
			h.report(PointConnectionGone, nil, fmt.Errorf("after the release: %w", err))
			h.lose(PointConnectionGone, err)
		}
	}
	if h.lost != nil {
		h.endSession(ctx)
	} else if err := h.s.conn.Close(); err != nil { // it has been returned
		h.report(PointConnectionGone, nil, fmt.Errorf("return the connection: %w", err))
	}
	h.lost = errClosed
}

// endSession ends the session and sees to it from a second connection that it is gone.
func (h *hold) endSession(ctx context.Context) {
	err := End(h.s.conn)
	if len(h.doubt) == 0 {
		return // it holds nothing; the connection is closed, and there is nobody to tell that it could not be (End's docs)
	}
	free, aerr := h.awaitFree(ctx)
	if !free && aerr == nil && h.s.id != 0 {
		_, kerr := h.l.db.ExecContext(ctx, fmt.Sprintf("KILL %d", h.s.id)) //nolint:gosec // a number that the server gave
		free, aerr = h.awaitFree(ctx)
		aerr = errors.Join(kerr, aerr)
	}
	if !free {
		h.report(PointSessionNotEnded, keys(h.doubt), errors.Join(err, aerr))
	}
}

// awaitFree waits a little until the session holds none of the locks any more. Of one whose ID was never heard nobody may.
func (h *hold) awaitFree(ctx context.Context) (bool, error) {
	var terms []string
	for _, lk := range h.doubt {
		if h.s.id == 0 {
			terms = append(terms, HeldExpr(lk.name))
		} else {
			terms = append(terms, fmt.Sprintf("IS_USED_LOCK('%s') <=> %d", lk.name, h.s.id))
		}
	}
	query := "SELECT " + strings.Join(terms, " OR ")
	for end := time.Now().Add(endTime); ; time.Sleep(lookAway) {
		var held sql.NullBool
		if err := h.l.db.QueryRowContext(ctx, query).Scan(&held); err != nil { //nolint:gosec // of names made by Name, and a number
			return false, fmt.Errorf("look whether the session has ended: %w", err)
		}
		if !held.Bool || time.Now().After(end) {
			return !held.Bool, nil
		}
	}
}
