package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/monitor"
)

type jobCmd struct {
	Run jobRunCmd `cmd:"" name:"run" help:"Run a command under a named lock, and once in a period, on one of any number of machines."`
}

type jobRunCmd struct {
	config.MySQL  `embed:""`
	config.Alerts `embed:""`

	OncePer     *string       `name:"once-per" env:"ONCEPOST_JOB_ONCE_PER" placeholder:"PERIOD" help:"hour, day, week or month: where the job has been done in this one, it is not run. The database's clock says which it is. Default: run it each time."`
	Period      *string       `name:"period" env:"ONCEPOST_JOB_PERIOD" placeholder:"TEXT" help:"In place of --once-per: the period itself, such as 2026-12-01, to catch up with one."`
	TimeZone    string        `name:"time-zone" env:"ONCEPOST_JOB_TIME_ZONE" default:"UTC" placeholder:"ZONE" help:"Where the hour, day, week or month begins, such as Asia/Seoul."`
	TakeOver    bool          `name:"take-over" env:"ONCEPOST_JOB_TAKE_OVER" help:"Run a job again that has begun in this period and crashed. Default: that is an error, and a person decides."`
	Wait        time.Duration `name:"wait" env:"ONCEPOST_JOB_WAIT" default:"0s" help:"How long to wait for another that is at it; with a period the job is run then if it was another period's, or failed."`
	LockTimeout time.Duration `name:"lock-timeout" env:"ONCEPOST_JOB_LOCK_TIMEOUT" default:"15s" help:"How long this process may be silent before the server frees the lock; whole seconds, at least 3."`
	KillAfter   time.Duration `name:"kill-after" env:"ONCEPOST_JOB_KILL_AFTER" default:"10s" help:"How long after SIGTERM the command, and what is left of its process group, gets SIGKILL."`
	Skipped     int           `name:"skipped-exit-code" env:"ONCEPOST_JOB_SKIPPED_EXIT_CODE" default:"0" help:"Exit code where the command was not run because it has been done or another is at it."`

	Name    string   `arg:"" help:"The job's name: printable ASCII without spaces, up to 128 characters."`
	Command []string `arg:"" passthrough:"partial" help:"The command and its arguments, after --."`
}

// Help is what kong prints below the summary.
func (jobRunCmd) Help() string {
	return `The command runs while this process holds the MySQL lock of the job's name. It gets SIGTERM, with its process group, when the lock is lost and when this process is told to stop; its input and output are this process's. At a terminal there is no group of its own, and Ctrl-C reaches everything. What the command leaves behind in the background when it ends well runs on without the lock.

With --once-per or --period the table job_runs remembers the run: one that ended with exit code 0 is not run again in that period, one that ended with another, or by a signal, may be, and one whose oncepost was killed waits for a person, or for --take-over.

Exit codes: the command's own, or 128 and the number of the signal that ended it; 0 or --skipped-exit-code, it was not run because it has been done or another is at it; 125, oncepost itself failed (the database is away, a run has crashed, another run still goes on after which nobody would do this period's; the lock was lost or oncepost stopped, and the command ended well all the same); 126, the command cannot be run; 127, there is no such command; 2, the call was wrong.

oncepost job run leave-accrual --once-per day --time-zone Asia/Seoul -- /opt/app/accrue-leave --all`
}

func (c *jobRunCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return config.UsageError{Err: err}
	}
	err := c.run(a)
	var (
		busy   *locks.NotAcquiredError
		exited config.ExitError
		usage  config.UsageError
	)
	switch {
	case err == nil || errors.As(err, &exited) || errors.As(err, &usage):
		return err
	case errors.Is(err, locks.ErrName):
		return config.UsageError{Err: err}
	case errors.As(err, &busy):
		a.logger.Info("job not run: another is at it", "job", c.Name, "session", busy.Holder)
		return c.skipped()
	}
	return config.ExitError{Code: codeOwn, Err: err}
}

// Exit codes as env(1), nohup(1) and timeout(1) have them.
const (
	codeOwn        = 125
	codeNotRunning = 126
	codeNotFound   = 127
	codeSignal     = 128
)

func (c *jobRunCmd) check() error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	switch _, err := time.LoadLocation(c.TimeZone); {
	case err != nil:
		return fmt.Errorf("--time-zone: %w", err)
	case c.TimeZone == "Local" || c.TimeZone == "":
		return errors.New("--time-zone must be the same on every machine: UTC, Asia/Seoul")
	case len(c.Command) == 0:
		return errors.New("a command is needed, after --")
	case c.Name == "":
		return errors.New("the job needs a name")
	case c.OncePer != nil && c.Period != nil:
		return errors.New("--once-per and --period (or ONCEPOST_JOB_ONCE_PER and ONCEPOST_JOB_PERIOD) exclude each other")
	case c.OncePer != nil && periods[*c.OncePer] == nil:
		return fmt.Errorf("--once-per is %q, must be hour, day, week or month", *c.OncePer)
	case c.OncePer == nil && c.Period == nil && (c.TakeOver || c.TimeZone != "UTC"):
		return errors.New("--take-over and --time-zone go with --once-per or --period, without which the job runs each time")
	case c.Wait < 0:
		return errors.New("--wait cannot be negative")
	case c.KillAfter <= 0:
		return errors.New("--kill-after must be positive")
	case c.Skipped < 0 || c.Skipped > 255:
		return errors.New("--skipped-exit-code is from 0 to 255")
	}
	return nil
}

var periods = map[string]func(time.Time) string{"hour": locks.Hour, "day": locks.Day, "week": locks.Week, "month": locks.Month}

func (c *jobRunCmd) skipped() error {
	if c.Skipped == 0 {
		return nil
	}
	return config.ExitError{Code: c.Skipped}
}

func (c *jobRunCmd) run(a *app) error {
	alerter, err := c.Alerter(a.logger)
	if err != nil {
		return err
	}
	db, err := c.Open(a.logger)
	if err != nil {
		return err
	}
	defer db.Close()
	locker, err := locks.New(db, locks.Config{Timeout: c.LockTimeout, Report: reportLock(a, alerter, db, c.Name)})
	if err != nil {
		return config.UsageError{Err: fmt.Errorf("--lock-timeout: %w", err)}
	}
	command := func(ctx context.Context) error { return runChild(ctx, a, c.Command, c.KillAfter) }
	if c.OncePer == nil && c.Period == nil {
		return locker.With(a.ctx, "job/"+c.Name, c.Wait, command)
	}
	period, err := c.period(a.ctx, db)
	if err != nil {
		return err
	}
	options := []locks.Option{locks.Wait(c.Wait)}
	if c.TakeOver {
		options = append(options, locks.TakeOver())
	}
	ran, err := locker.OncePer(a.ctx, c.Name, period, command, options...)
	switch {
	case err == nil && !ran:
		a.logger.Info("job not run: it has been done", "job", c.Name, "period", period)
		return c.skipped()
	case errors.As(err, new(*locks.NotAcquiredError)):
		return c.unlessAnotherPeriods(a.ctx, db, period, err)
	}
	return err
}

// unlessAnotherPeriods tells that what goes on is this period's run, which may be left to who is at it, from any other, after which
// this one's would never be. Who has just taken the lock is given time to write its record.
func (c *jobRunCmd) unlessAnotherPeriods(ctx context.Context, db *sql.DB, period string, busy error) error {
	const patience, look = 2 * time.Second, 50 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(look) {
		var ours bool
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) > 0 FROM job_runs WHERE job = ? AND period = ? AND state <> 'failed'", c.Name, period).Scan(&ours)
		if err != nil {
			return fmt.Errorf("%w; and which run that is cannot be read: %w", busy, err)
		}
		if ours {
			return busy
		}
	}
	return config.ExitError{Code: codeOwn, Err: fmt.Errorf("job %s of %s was not run: another period's run, or one without a period, still goes on "+
		"(--wait waits for it): %w", c.Name, period, busy)}
}

// period is the one that was asked for, by the database's clock: machines need not agree on theirs.
func (c *jobRunCmd) period(ctx context.Context, db *sql.DB) (string, error) {
	if c.Period != nil {
		return *c.Period, nil
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return "", err
	}
	var seconds int64
	if err := db.QueryRowContext(ctx, "SELECT UNIX_TIMESTAMP()").Scan(&seconds); err != nil {
		return "", fmt.Errorf("ask the database for the time: %w", err)
	}
	return periods[*c.OncePer](time.Unix(seconds, 0).In(zone)), nil
}

// reportLock tells of a clean-up that did not go as it should: by the log, and by an alert unless people have heard of the same job
// a short while ago. The watches show it, and say when it counts no more.
func reportLock(a *app, alerter *alerts.Alerter, db *sql.DB, job string) func(locks.Report) {
	record := monitor.NewRecorder(db)
	return func(r locks.Report) {
		a.logger.Error(r.Text(), "job", job, "point", r.Point, "locks", r.Keys, "session", r.Session, "error", r.Err)
		ctx := context.WithoutCancel(a.ctx)
		subject := "job/" + job
		first, err := record.LockLost(ctx, subject, r.Text(), alerter != nil)
		if err != nil {
			a.logger.Warn("the watches cannot show it", "job", job, "error", err)
		}
		if alerter == nil || err == nil && !first {
			return
		}
		sent := alerter.Send(ctx, alerts.Alert{ // bounded in time; the Alerter has logged its error
			Title: "job " + job + ": " + r.Text(), Fields: map[string]string{"condition": monitor.CondLockLost, "point": r.Point, "session": fmt.Sprint(r.Session)},
		})
		if err != nil || !reached(sent) {
			return // where the row is, a watch tells instead
		}
		if err := record.Told(ctx, subject); err != nil {
			a.logger.Warn("a watch may tell people once more", "job", job, "error", err)
		}
	}
}

// reached reports whether somebody has an alert, whatever went wrong on the way.
func reached(err error) bool {
	var failed *alerts.Error
	return err == nil || errors.As(err, &failed) && failed.Reached()
}
