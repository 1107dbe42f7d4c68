package locks

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// JobRunsSQL makes the table that OncePer keeps its records in, for those who do not run oncepost's migrations; it is theirs,
// word for word. The account needs SELECT, INSERT and UPDATE on it.
const JobRunsSQL = `CREATE TABLE IF NOT EXISTS job_runs (
  job VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  period VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- running, done, or failed (it said so, and may run again).
  state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- The run's own, so that one that was taken over cannot end the record of its successor.
  token BINARY(16) NOT NULL,
  -- How often it has begun.
  attempts INT UNSIGNED NOT NULL DEFAULT 1,
  -- The machine of the last run, and its process.
  host VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  process BIGINT UNSIGNED NOT NULL DEFAULT 0,
  started_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  ended_at TIMESTAMP(6) NULL DEFAULT NULL,
  PRIMARY KEY (job, period),
  KEY by_age (started_at),
  CONSTRAINT job_runs_state_is_known CHECK (state IN ('running', 'done', 'failed'))
) ENGINE=InnoDB`

// Option of OncePer.
type Option func(*once)

// TakeOver lets a job run again that has crashed: that has begun, and of which nobody knows how far it got. Default: that is a
// [*CrashedError], and a person decides.
func TakeOver() Option { return func(o *once) { o.takeOver = true } }

// CrashedError says that a job began in this period and did not end: its process was killed, or its end could not be recorded. It has not
// run now.
type CrashedError struct {
	Job, Period string
	// Host and Process (its ID) of the run.
	Host    string
	Process int64
	// Ago is how long ago it began, by the database's clock.
	Ago time.Duration
}

func (e *CrashedError) Error() string {
	return fmt.Sprintf("locks: job %q of %s began %s ago (%s, process %d) and did not end; see how far it got, then let it be taken over "+
		"(locks.TakeOver, oncepost job run --take-over), or set its row in job_runs to 'done'", e.Job, e.Period, e.Ago.Round(time.Second), e.Host, e.Process)
}

// Wait lets OncePer wait for an instance that is at it, as wait of [Locker.With] says; then the record tells whether there is anything
// left to do. Default: not at all.
func Wait(wait time.Duration) Option { return func(o *once) { o.wait = wait } }

// once is one call of OncePer.
type once struct {
	job, period string
	takeOver    bool
	wait        time.Duration
	token       [16]byte
	hold        *hold
}

var jobName = regexp.MustCompile(`^[!-~]{1,128}$`)

const longestPeriod = 64

// ErrName refuses a job's name or a period.
var ErrName = errors.New("locks: want printable ASCII without spaces, a job of 1 to 128 characters and a period of 1 to 64")

// OncePer runs fn where it has not been done yet in this period, under the lock "job/" + job, and keeps a record of it in the table
// job_runs (see [JobRunsSQL]): an instance that comes after the first has finished does not run it again. period is any text that
// all instances agree on, as [Day] makes it; job and period are printable ASCII without spaces, at most 128 and 64 characters.
//
// ran tells whether fn ran; where it had been done before, that is false and no error. err is the very error that fn returned, if
// it did; such a run has failed, and the next call runs it again. Else it is:
//   - a [*NotAcquiredError] where another instance is at it, in whatever period;
//   - an [ErrName];
//   - a [*CrashedError] where a run has crashed, see [TakeOver];
//   - where fn returned nil and this could not be recorded, an error that says so: the record counts as crashed then.
//
// For fn's context see [Locker.With].
func (l *Locker) OncePer(ctx context.Context, job, period string, fn func(ctx context.Context) error, options ...Option) (ran bool, err error) {
	o := once{job: job, period: period}
	for _, set := range options {
		set(&o)
	}
	if !jobName.MatchString(job) || !jobName.MatchString(period) || len(period) > longestPeriod {
		return false, fmt.Errorf("%w: job %q, period %q", ErrName, job, period)
	}
	rand.Read(o.token[:]) // never fails (documented)
	err = l.under(ctx, []string{"job/" + job}, o.wait, func(ctx context.Context, h *hold) error {
		o.hold = h
		ran, err = o.begin(ctx)
		if err != nil || !ran {
			return err
		}
		h.begin()
		return o.run(ctx, fn)
	})
	return ran, err
}

// run runs fn, and records how it ended, if by a panic.
func (o *once) run(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	state := "failed"
	defer func() {
		rerr := o.record(state)
		switch {
		case rerr == nil:
		case state == "done":
			err = fmt.Errorf("locks: job %q of %s has run, but that could not be recorded: %w", o.job, o.period, rerr)
		default: // the caller sees fn's own error, or its panic
			o.hold.mu.Lock()
			o.hold.report(PointRecordFailed, []string{"job/" + o.job}, rerr)
			o.hold.unlock()
		}
	}()
	if err = fn(ctx); err == nil {
		state = "done"
	}
	return err
}

const (
	lookSQL = `SELECT state, token, host, process, TIMESTAMPDIFF(MICROSECOND, started_at, NOW(6)) FROM job_runs WHERE job = ? AND period = ?`

	firstSQL = `INSERT INTO job_runs (job, period, state, token, host, process) VALUES (?, ?, 'running', ?, ?, ?)`

	againSQL = `UPDATE job_runs SET state = 'running', token = ?, host = ?, process = ?, attempts = attempts + 1, started_at = NOW(6), ended_at = NULL
 WHERE job = ? AND period = ? AND token = ?`

	endSQL = `UPDATE job_runs SET state = ?, ended_at = NOW(6) WHERE job = ? AND period = ? AND token = ?`
)

// begin reads the record and writes that it runs, unless it should not.
func (o *once) begin(ctx context.Context) (run bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = o.hold.transaction(func(ctx context.Context, conn *sql.Conn) error {
		var (
			state  string
			before []byte
			c      = CrashedError{Job: o.job, Period: o.period}
			micros int64
		)
		err := conn.QueryRowContext(ctx, lookSQL, o.job, o.period).Scan(&state, &before, &c.Host, &c.Process, &micros)
		switch c.Ago = time.Duration(micros) * time.Microsecond; {
		case errors.Is(err, sql.ErrNoRows):
			err = change(ctx, conn, firstSQL, o.job, o.period, o.token[:], host(), os.Getpid())
		case err != nil:
		case state == "done":
			return nil
		case state == "running" && !o.takeOver:
			return &c
		default:
			err = change(ctx, conn, againSQL, o.token[:], host(), os.Getpid(), o.job, o.period, before)
		}
		run = err == nil
		return err
	})
	var crashed *CrashedError
	if err != nil && !errors.As(err, &crashed) {
		return false, fmt.Errorf("locks: job %q of %s has not run; its record in job_runs (a table of `oncepost migrate`, or of locks.JobRunsSQL) cannot be used: %w", o.job, o.period, err)
	}
	return run && err == nil, err
}

var errNotOurs = errors.New("another run has the record by now")

// change changes one row, or fails.
func change(ctx context.Context, conn *sql.Conn, query string, args ...any) error {
	r, err := conn.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errNotOurs, err)
	}
	return nil
}

// record writes how the run ended: on the lock's session, and where that has gone on another.
func (o *once) record(state string) error {
	end := func(ctx context.Context, conn *sql.Conn) error {
		return change(ctx, conn, endSQL, state, o.job, o.period, o.token[:])
	}
	err := o.hold.transaction(end)
	if err == nil || errors.Is(err, errNotOurs) || number(err) != 0 && !gone(err) { // the server's own answer
		return err
	}
	o.hold.giveUp(err) // its connection may be the pool's only one
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	conn, again := o.hold.l.db.Conn(ctx)
	if again == nil {
		again = errors.Join(transaction(ctx, conn, end), conn.Close())
	}
	if again != nil {
		return errors.Join(err, again)
	}
	return nil
}

// transaction runs work in one on the session. The caller's context has no part in it: a statement that is cut off ends the session.
func (h *hold) transaction(work func(ctx context.Context, conn *sql.Conn) error) error {
	h.mu.Lock()
	defer h.unlock()
	return h.within(context.Background(), cleanUp, func(ctx context.Context) error { return transaction(ctx, h.s.conn, work) })
}

// transaction sees what is committed, and commits, where the pool is without autocommit too. The statements are plain ones: those of
// database/sql's Tx can be rolled back behind one's back.
func transaction(ctx context.Context, conn *sql.Conn, work func(ctx context.Context, conn *sql.Conn) error) error {
	if _, err := conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	if err := work(ctx, conn); err != nil {
		if _, rerr := conn.ExecContext(ctx, "ROLLBACK"); rerr != nil {
			err = errors.Join(err, rerr)
		}
		return err
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

// giveUp ends the connection at once.
func (h *hold) giveUp(err error) {
	h.mu.Lock()
	defer h.unlock()
	h.lose(PointConnectionGone, err)
	_ = End(h.s.conn) // close looks whether the session has ended
}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "" // it is for people to read; a job runs without
	}
	return name
}

// Hour is the period of OncePer that a time is in, in its own location: 2026-12-01T07.
func Hour(t time.Time) string { return t.Format("2006-01-02T15") }

// Day is a period as [Hour] is: 2026-12-01. Where a clock is put back, an hour comes twice and a day does not.
func Day(t time.Time) string { return t.Format(time.DateOnly) }

// Week is a period as [Hour] is, of ISO 8601: 2026-W49.
func Week(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, week)
}

// Month is a period as [Hour] is: 2026-12.
func Month(t time.Time) string { return t.Format("2006-01") }
