package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Points of a Report: what did not go as it should. At lock_lost and connection_gone another may have run at the same time.
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
	// PointRecordFailed: a job of OncePer has failed, and that could not be recorded; its error is the caller's. The record says that it
	// runs, and counts as crashed.
	PointRecordFailed = "record_failed"
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
	case PointRecordFailed:
		return "a job has failed, and that could not be recorded: its record counts as crashed"
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
	cleanUp  = 5 * time.Second        // all of it
	endTime  = 250 * time.Millisecond // for the server to notice that a session has ended
	lookAway = 5 * time.Millisecond
)

// errClosed is what a context gets that outlives its function.
var errClosed = errors.New("locks: the function that had this context has returned")

// close gives all locks back, and the connection to the pool where the server has confirmed that; else it ends the session.
func (h *hold) close() {
	h.rest()
	defer h.cancel(errClosed)
	h.mu.Lock()
	defer h.unlock()
	if h.marked {
		h.release(append(slices.Clone(h.held), lock{"its own mark", h.mark}))
	}
	if h.guarded && h.lost == nil {
		if err := h.set(context.Background(), cleanUp, h.timeout); err != nil {
			h.report(PointConnectionGone, nil, fmt.Errorf("after the release: %w", err))
			h.lose(PointConnectionGone, err)
		}
	}
	if h.lost != nil {
		h.endSession()
	} else {
		_ = h.s.conn.Close() // it gives the connection to the pool, and fails only for one that has been given (database/sql)
	}
	h.lost = errClosed
}

// endSession ends the session and sees to it from a second connection that it is gone.
func (h *hold) endSession() {
	if h.ended {
		return
	}
	h.ended = true
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp) // the caller's own may be over
	defer cancel()
	err := End(h.s.conn)
	gone, aerr := h.awaitEnd(ctx)
	if !gone && aerr == nil {
		_, kerr := h.l.db.ExecContext(ctx, fmt.Sprintf("KILL %d", h.s.id)) //nolint:gosec // a number that the server gave
		gone, aerr = h.awaitEnd(ctx)
		aerr = errors.Join(kerr, aerr)
	}
	if !gone {
		h.report(PointSessionNotEnded, keys(h.doubt), errors.Join(err, aerr, errStill))
	}
}

var errStill = errors.New("the session may still be there")

// awaitEnd waits a little for the end of the session: until nobody holds its mark. It learns the ID of a session that had not told it.
func (h *hold) awaitEnd(ctx context.Context) (bool, error) {
	for end := time.Now().Add(endTime); ; time.Sleep(lookAway) {
		var holder sql.NullInt64
		if err := h.l.db.QueryRowContext(ctx, "SELECT IS_USED_LOCK('"+h.mark+"')").Scan(&holder); err != nil { //nolint:gosec // a name of our own making
			return false, fmt.Errorf("look whether the session has ended: %w", err)
		}
		if !holder.Valid {
			return true, nil
		}
		if h.s.id = holder.Int64; time.Now().After(end) {
			return false, nil
		}
	}
}
