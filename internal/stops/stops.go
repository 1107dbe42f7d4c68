// Package stops keeps worker.Stops in the table sending_stops. All times are the database's, so that the processes need not
// agree on one. What a stop means for a worker is package worker's.
package stops

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/oncepost/oncepost/worker"
)

// Config of Stops.
type Config struct {
	// Lease is how long the first stop lasts before a trial; each further stop in a row lasts twice as long as the one before.
	// Default 1 minute.
	Lease time.Duration
	// MaxLease bounds that. Default 15 minutes.
	MaxLease time.Duration
	// Trial is how long a worker has a trial that it does not renew. It renews each time it looks. Default 30 s.
	Trial time.Duration
}

// Stops implements worker.Stops, and what a person may do. It is safe for concurrent use.
type Stops struct {
	db  *sql.DB
	cfg Config
}

// New returns the stops in db, which is migrated.
func New(db *sql.DB, cfg Config) *Stops {
	if cfg.Lease == 0 {
		cfg.Lease = time.Minute
	}
	if cfg.MaxLease == 0 {
		cfg.MaxLease = 15 * time.Minute
	}
	if cfg.Trial == 0 {
		cfg.Trial = 30 * time.Second
	}
	return &Stops{db, cfg}
}

const standingSQL = `SELECT scope, class, cause, stopped_by, stops, UNIX_TIMESTAMP(since),
 COALESCE(GREATEST(0, TIMESTAMPDIFF(MICROSECOND, NOW(6), lease_ends_at)), 0),
 COALESCE(trial_ends_at > NOW(6), FALSE) FROM sending_stops`

const stopSQL = `INSERT INTO sending_stops (scope, class, cause, lease_ends_at)
 VALUES (?, ?, ?, NOW(6) + INTERVAL ? MICROSECOND) ON DUPLICATE KEY UPDATE scope = scope`

const trySQL = `UPDATE sending_stops SET holder = ?, trial_ends_at = NOW(6) + INTERVAL ? MICROSECOND
 WHERE scope = ? AND stopped_by = '' AND lease_ends_at <= NOW(6) AND (holder IS NULL OR holder = ? OR trial_ends_at <= NOW(6))`

// The lease is computed before its count is raised: assignments run from left to right.
const extendSQL = `UPDATE sending_stops SET class = ?, cause = ?,
 lease_ends_at = NOW(6) + INTERVAL CAST(LEAST(? * POW(2, LEAST(stops, 30)), ?) AS SIGNED) MICROSECOND,
 stops = stops + 1, holder = NULL, trial_ends_at = NULL WHERE scope = ? AND holder = ? AND stopped_by = ''`

const releaseSQL = `UPDATE sending_stops SET holder = NULL, trial_ends_at = NULL WHERE scope = ? AND holder = ?`

const resumeSQL = `DELETE FROM sending_stops WHERE scope = ? AND holder = ?`

// A trial that goes on must not end a person's stop, so it is taken from its holder.
const personSQL = `INSERT INTO sending_stops (scope, class, cause, stopped_by) VALUES (?, ?, ?, ?)
 ON DUPLICATE KEY UPDATE class = VALUES(class), cause = VALUES(cause), stopped_by = VALUES(stopped_by), since = NOW(6),
 lease_ends_at = NULL, stops = 1, holder = NULL, trial_ends_at = NULL`

// Standing implements worker.Stops.
func (s *Stops) Standing(ctx context.Context, scopes ...string) (all []worker.Stop, err error) {
	query, args := standingSQL, make([]any, len(scopes))
	for i, scope := range scopes {
		args[i] = scope
	}
	if len(scopes) > 0 {
		query += " WHERE scope IN (?" + strings.Repeat(", ?", len(scopes)-1) + ")"
	}
	rows, err := s.db.QueryContext(ctx, query+" ORDER BY scope", args...)
	if err != nil {
		return nil, fmt.Errorf("read the stops of sending: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			stop  worker.Stop
			since float64
			left  int64
		)
		if err := rows.Scan(&stop.Scope, &stop.Class, &stop.Text, &stop.By, &stop.Stops, &since, &left, &stop.Trial); err != nil {
			return nil, fmt.Errorf("read the stops of sending: %w", err)
		}
		stop.Since, stop.Left = time.UnixMicro(int64(math.Round(since*1e6))).UTC(), time.Duration(left)*time.Microsecond
		all = append(all, stop)
	}
	return all, rows.Err()
}

// Stop implements worker.Stops.
func (s *Stops) Stop(ctx context.Context, scope, class, text string) error {
	_, err := s.exec(ctx, "record a stop of sending", stopSQL, scope, class, text, s.cfg.Lease.Microseconds())
	return err
}

// Try implements worker.Stops.
func (s *Stops) Try(ctx context.Context, scope string, h worker.Holder) (time.Duration, error) {
	changed, err := s.exec(ctx, "take the trial of a stop", trySQL, h[:], s.cfg.Trial.Microseconds(), scope, h[:])
	if err != nil || changed == 0 {
		return 0, err
	}
	return s.cfg.Trial, nil
}

// Extend implements worker.Stops.
func (s *Stops) Extend(ctx context.Context, scope string, h worker.Holder, class, text string) error {
	_, err := s.exec(ctx, "extend a stop of sending", extendSQL, class, text, s.cfg.Lease.Microseconds(), s.cfg.MaxLease.Microseconds(), scope, h[:])
	return err
}

// Release implements worker.Stops.
func (s *Stops) Release(ctx context.Context, scope string, h worker.Holder) error {
	_, err := s.exec(ctx, "release the trial of a stop", releaseSQL, scope, h[:])
	return err
}

// Resume implements worker.Stops.
func (s *Stops) Resume(ctx context.Context, scope string, h worker.Holder) error {
	_, err := s.exec(ctx, "end a stop of sending", resumeSQL, scope, h[:])
	return err
}

// StopBy stops sending everywhere, until a person resumes it.
func (s *Stops) StopBy(ctx context.Context, by, why string) error {
	if by == "" || why == "" {
		return errors.New("a stop needs who stops and why")
	}
	_, err := s.exec(ctx, "stop sending", personSQL, worker.ScopeAll, worker.ClassPerson, why, by)
	return err
}

// Clear ends every stop, whoever made it, and returns those that it ended.
func (s *Stops) Clear(ctx context.Context) (cleared []worker.Stop, err error) {
	all, err := s.Standing(ctx)
	if err != nil {
		return nil, err
	}
	for _, stop := range all {
		n, err := s.exec(ctx, "end a stop of sending", "DELETE FROM sending_stops WHERE scope = ?", stop.Scope)
		if err != nil {
			return cleared, err
		}
		if n > 0 { // else it has just ended by itself
			cleared = append(cleared, stop)
		}
	}
	return cleared, nil
}

func (s *Stops) exec(ctx context.Context, what, query string, args ...any) (changed int64, err error) {
	r, err := s.db.ExecContext(ctx, query, args...)
	if err == nil {
		changed, err = r.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return changed, nil
}
