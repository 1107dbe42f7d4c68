// Package ledger keeps activities.Ledger in the table sends.
//
// A claim is one INSERT … ON DUPLICATE KEY UPDATE, which inserts the row, takes it where the rules let it, or changes
// nothing; the count of changed rows tells which. Only in the last case a second statement reads why. All times are the
// database's.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/oncepost/oncepost/activities"
)

// Ledger implements activities.Ledger. It is safe for concurrent use.
type Ledger struct {
	calls *semaphore.Weighted

	claim, read, record, mine, settle, done, authorise, authorised *sql.Stmt
}

// takeable is when a claim may take a row that is there: the same generation was tried and certainly did not happen, or the
// one before may have happened and one more was authorised. So an authorisation is used up by its claim.
const takeable = `content = VALUES(content) AND (
 state = 'free' AND generation = VALUES(generation)
 OR generation + 1 = VALUES(generation) AND (state = 'unknown' OR state = 'claimed' AND expires_at <= NOW(6)))`

// ours is when the row is, or has just been made, this claim's. A claim that was committed, while its answer was lost, comes
// again with its own token and is given the row again; but not once an outcome stands in it.
const ours = `token = VALUES(token) AND (state = 'claimed' OR state = 'free' AND generation = VALUES(generation)
 OR state = 'unknown' AND generation + 1 = VALUES(generation))`

// The assignments run from left to right, and each sees what those before it have set (on both servers).
const claimSQL = `INSERT INTO sends (message_id, step, recipient, content, generation, state, token, expires_at)
 VALUES (?, ?, ?, ?, ?, 'claimed', ?, NOW(6) + INTERVAL ? MICROSECOND)
 ON DUPLICATE KEY UPDATE
 token = IF(` + takeable + `, VALUES(token), token),
 expires_at = IF(` + ours + `, VALUES(expires_at), expires_at),
 state = IF(` + ours + `, 'claimed', state),
 generation = IF(token = VALUES(token) AND state = 'claimed', VALUES(generation), generation)`

const readSQL = `SELECT content = ?, state, generation, result_id, error_class,
 TIMESTAMPDIFF(MICROSECOND, NOW(6), expires_at) FROM sends WHERE message_id = ? AND step = ? AND recipient = ?`

// A known outcome is worth recording even when the claim has expired meanwhile, while nobody else has claimed.
const recordSQL = `UPDATE sends SET state = ?, result_id = ?, error_class = ?
 WHERE message_id = ? AND step = ? AND recipient = ? AND token = ? AND state IN ('claimed', 'unknown')`

const mineSQL = `SELECT token = ? AND state = ? FROM sends WHERE message_id = ? AND step = ? AND recipient = ?`

const settleSQL = `UPDATE sends SET state = 'done', error_class = 'resolved'
 WHERE message_id = ? AND step = ? AND recipient = ? AND (state IN ('unknown', 'free', 'refused') OR state = 'claimed' AND expires_at <= NOW(6))`

const authoriseSQL = `UPDATE sends SET state = 'free', generation = ?, error_class = 'authorised'
 WHERE message_id = ? AND step = ? AND recipient = ? AND generation + 1 = ?
 AND (state = 'unknown' OR state = 'claimed' AND expires_at <= NOW(6))`

const authorisedSQL = `SELECT generation >= ? FROM sends WHERE message_id = ? AND step = ? AND recipient = ?`

const doneSQL = `SELECT state = 'done' FROM sends WHERE message_id = ? AND step = ? AND recipient = ?`

// maxCalls bounds the connections in use: as many as the pool keeps idle, so that a hundred sends at once neither open a hundred
// connections nor prepare the statements anew on each.
const maxCalls = 8

// New prepares the statements on db, which must outlive the ledger.
func New(ctx context.Context, db *sql.DB) (*Ledger, error) {
	l := &Ledger{calls: semaphore.NewWeighted(maxCalls)}
	for query, stmt := range map[string]**sql.Stmt{
		claimSQL: &l.claim, readSQL: &l.read, recordSQL: &l.record, mineSQL: &l.mine, settleSQL: &l.settle, doneSQL: &l.done,
		authoriseSQL: &l.authorise, authorisedSQL: &l.authorised,
	} {
		var err error
		if *stmt, err = db.PrepareContext(ctx, query); err != nil { //nolint:sqlclosecheck // they end with the pool
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	return l, nil
}

// Claim implements activities.Ledger.
func (l *Ledger) Claim(ctx context.Context, c activities.Claim) (activities.Entry, error) {
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return activities.Entry{}, fmt.Errorf("ledger: wait for a connection: %w", err)
	}
	defer l.calls.Release(1)
	r, err := l.claim.ExecContext(ctx, []byte(c.MessageID), []byte(c.Step), c.Recipient[:], c.Content[:], c.Generation, c.Token[:], c.For.Microseconds())
	if err != nil {
		return activities.Entry{}, fmt.Errorf("ledger: claim: %w", err)
	}
	changed, err := r.RowsAffected()
	if err != nil {
		return activities.Entry{}, fmt.Errorf("ledger: claim: %w", err)
	}
	if changed > 0 {
		return activities.Entry{Standing: activities.StandingClaimed}, nil
	}
	return l.why(ctx, c)
}

// why reads what kept a claim from the row.
func (l *Ledger) why(ctx context.Context, c activities.Claim) (e activities.Entry, err error) {
	var (
		same       bool
		state      string
		generation int
		left       int64
	)
	err = l.read.QueryRowContext(ctx, c.Content[:], []byte(c.MessageID), []byte(c.Step), c.Recipient[:]).
		Scan(&same, &state, &generation, &e.ResultID, &e.ErrorClass, &left)
	if errors.Is(err, sql.ErrNoRows) { // purged in between: the next attempt inserts it
		return activities.Entry{Standing: activities.StandingBusy, Wait: time.Second}, nil
	}
	if err != nil {
		return e, fmt.Errorf("ledger: read: %w", err)
	}
	switch {
	case !same:
		e.Standing = activities.StandingDiffers
	case state == "done":
		e.Standing = activities.StandingDone
	case state == "refused":
		e.Standing = activities.StandingRefused
	case state == "claimed" && left > 0:
		e.Standing, e.Wait = activities.StandingBusy, time.Duration(left)*time.Microsecond
	case state == "free": // as a generation that this claim does not know: it was authorised, and not used up
		e.Standing, e.Next, e.Authorised = activities.StandingUnknown, generation, true
	default: // unknown, or claimed by an attempt that never came back
		e.Standing, e.Next = activities.StandingUnknown, generation+1
	}
	return e, nil
}

// Record implements activities.Ledger.
func (l *Ledger) Record(ctx context.Context, key activities.Key, token activities.Token, o activities.Outcome) error {
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("ledger: wait for a connection: %w", err)
	}
	defer l.calls.Release(1)
	r, err := l.record.ExecContext(ctx, o.Standing.String(), o.ResultID, o.ErrorClass, []byte(key.MessageID), []byte(key.Step), key.Recipient[:], token[:])
	if err != nil {
		return fmt.Errorf("ledger: record: %w", err)
	}
	return confirm(ctx, r, l.mine, token[:], o.Standing.String(), []byte(key.MessageID), []byte(key.Step), key.Recipient[:])
}

// Settle implements activities.Ledger.
func (l *Ledger) Settle(ctx context.Context, key activities.Key) error {
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("ledger: wait for a connection: %w", err)
	}
	defer l.calls.Release(1)
	args := []any{[]byte(key.MessageID), []byte(key.Step), key.Recipient[:]}
	r, err := l.settle.ExecContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("ledger: settle: %w", err)
	}
	return confirm(ctx, r, l.done, args...)
}

// Authorise implements activities.Ledger.
func (l *Ledger) Authorise(ctx context.Context, key activities.Key, generation int) error {
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("ledger: wait for a connection: %w", err)
	}
	defer l.calls.Release(1)
	id, step, recipient := []byte(key.MessageID), []byte(key.Step), key.Recipient[:]
	r, err := l.authorise.ExecContext(ctx, generation, id, step, recipient, generation)
	if err != nil {
		return fmt.Errorf("ledger: authorise: %w", err)
	}
	return confirm(ctx, r, l.authorised, generation, id, step, recipient)
}

// confirm asks, where an update changed nothing, whether what it wanted stands already: its first answer was lost.
func confirm(ctx context.Context, r sql.Result, stands *sql.Stmt, args ...any) error {
	changed, err := r.RowsAffected()
	if err != nil || changed > 0 {
		return err
	}
	var yes bool
	if err := stands.QueryRowContext(ctx, args...).Scan(&yes); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("ledger: confirm: %w", err)
	}
	if !yes {
		return activities.ErrSuperseded
	}
	return nil
}
