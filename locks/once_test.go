package locks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
)

func eachJobs(t *testing.T, test func(t *testing.T, s *testdb.Schema)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, JobRunsSQL)
		test(t, s)
	})
}

// jobs runs jobs.
type jobs struct {
	t *testing.T
	l *Locker
}

// once runs a job that returns err.
func (j jobs) once(job, period string, err error, options ...Option) (bool, error) {
	j.t.Helper()
	entered := false
	ran, got := j.l.OncePer(j.t.Context(), job, period, func(context.Context) error { entered = true; return err }, options...)
	if ran != entered {
		j.t.Errorf("%s of %s: ran is %v, it ran: %v", job, period, ran, entered)
	}
	return ran, got
}

func (j jobs) ran(job, period string, err error) {
	j.t.Helper()
	if ran, got := j.once(job, period, err); !ran || got != err { //nolint:errorlint // the very error
		j.t.Errorf("%s of %s: ran %v, %v", job, period, ran, got)
	}
}

// done sees to it that a job has been done.
func (j jobs) done(job, period string) {
	j.t.Helper()
	if ran, err := j.once(job, period, nil); ran || err != nil {
		j.t.Errorf("%s of %s: ran %v, %v", job, period, ran, err)
	}
}

func TestOncePer(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		j := jobs{t, l}
		j.ran("accrual", "2026-12-01", nil)
		j.done("accrual", "2026-12-01")
		j.ran("accrual", "2026-12-02", errWork) // a run that failed is run again
		j.ran("accrual", "2026-12-02", nil)
		j.done("accrual", "2026-12-02")
		j.ran("ACCRUAL", "2026-12-01", nil)
		state := testdb.Value[string](t, s.DB, `SELECT GROUP_CONCAT(CONCAT_WS(' ', job, period, state, attempts, ended_at >= started_at, host <> '', process > 0)
 ORDER BY job, period SEPARATOR ', ') FROM job_runs`)
		if want := "ACCRUAL 2026-12-01 done 1 1 1 1, accrual 2026-12-01 done 1 1 1 1, accrual 2026-12-02 done 2 1 1 1"; state != want {
			t.Errorf("records %s\nwant    %s", state, want)
		}
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// Of many instances one runs it, whether they come at once or one after the other.
func TestOncePerOfMany(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		var runs atomic.Int64
		var all sync.WaitGroup
		for range 12 {
			l, _ := locker(t, s.DB, 0)
			all.Go(func() {
				for range 5 {
					_, err := l.OncePer(t.Context(), "accrual", "2026-12-01", func(context.Context) error {
						runs.Add(1)
						time.Sleep(20 * time.Millisecond)
						return nil
					})
					if err != nil && !errors.As(err, new(*NotAcquiredError)) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// A panic is a failure that is known: the job may run again.
func TestAJobThatPanics(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, _ := locker(t, s.DB, 0)
		func() {
			defer func() { _ = recover() }()
			_, _ = l.OncePer(t.Context(), "accrual", "2026-12-01", func(context.Context) error { panic("boom") })
		}()
		jobs{t, l}.ran("accrual", "2026-12-01", nil)
	})
}

// A job whose session was ended while it ran has been done all the same, where it says so; the lost lock is reported.
func TestAJobWhoseLockIsLost(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		ran, err := l.OncePer(t.Context(), "accrual", "2026-12-01", func(context.Context) error {
			testdb.Exec(t, s.DB, "KILL "+itoa(testdb.Value[int64](t, s.DB, "SELECT IS_USED_LOCK(?)", Name(s.Name, "job/accrual"))))
			return nil
		})
		if !ran || err != nil || len(r.all) != 1 || r.all[0].Point != PointConnectionGone {
			t.Errorf("ran %v, %v, reports %+v", ran, err, r.all)
		}
		jobs{t, l}.done("accrual", "2026-12-01")
	})
}

// A run that was taken over meanwhile does not end its successor's record.
func TestARunThatWasTakenOver(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, _ := locker(t, s.DB, 0)
		ran, err := l.OncePer(t.Context(), "accrual", "2026-12-01", func(context.Context) error {
			testdb.Exec(t, s.DB, "UPDATE job_runs SET token = 'another'")
			return nil
		})
		if !ran || !errors.Is(err, errNotOurs) || !strings.Contains(err.Error(), "has run, but that could not be recorded") {
			t.Errorf("ran %v, %v", ran, err)
		}
		if state := testdb.Value[string](t, s.DB, "SELECT state FROM job_runs"); state != "running" {
			t.Error(state)
		}
	})
}

// A pool without autocommit keeps records too.
func TestOncePerWithoutAutocommit(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		cfg, err := mysql.ParseDSN(s.DSN)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Params = map[string]string{"autocommit": "0"}
		l, _ := locker(t, testdb.Open(t, cfg.FormatDSN()), 0)
		jobs{t, l}.ran("accrual", "2026-12-01", nil)
		other, _ := locker(t, s.DB, 0)
		jobs{t, other}.done("accrual", "2026-12-01")
	})
}

func TestOncePerRefuses(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, _ := locker(t, s.DB, 0)
		j := jobs{t, l}
		if ran, err := j.once("accrual", "2026-12-01", nil); ran || err == nil || !strings.Contains(err.Error(), "has not run") || !strings.Contains(err.Error(), "job_runs") {
			t.Errorf("without the table: ran %v, %v", ran, err)
		}
		for _, c := range [][2]string{
			{"", "a"}, {"a", ""}, {"a b", "a"}, {"a", "é"}, {strings.Repeat("a", 129), "a"}, {"a", strings.Repeat("a", 65)}, {"a\n", "a"},
		} {
			if ran, err := j.once(c[0], c[1], nil); ran || !errors.Is(err, ErrName) {
				t.Errorf("%q: ran %v, %v", c, ran, err)
			}
		}
	})
}

func TestPeriods(t *testing.T) {
	at := time.Date(2027, 1, 1, 7, 59, 0, 0, time.FixedZone("KST", 9*3600))
	for got, want := range map[string]string{Hour(at): "2027-01-01T07", Day(at): "2027-01-01", Week(at): "2026-W53", Month(at): "2027-01", Day(at.UTC()): "2026-12-31"} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A pool of one connection: the record is written though the lock's session is lost, and known to be.
func TestAJobOnAPoolOfOne(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		db := testdb.Open(t, s.DSN)
		db.SetMaxOpenConns(1)
		l, r := locker(t, db, leastTimeout)
		ran, err := l.OncePer(t.Context(), "accrual", "2026-12-01", func(ctx context.Context) error {
			testdb.Exec(t, s.DB, "KILL "+itoa(testdb.Value[int64](t, s.DB, "SELECT IS_USED_LOCK(?)", Name(s.Name, "job/accrual"))))
			<-ctx.Done()
			return nil
		})
		if !ran || err != nil || len(r.all) != 1 {
			t.Errorf("ran %v, %v, reports %+v", ran, err, r.all)
		}
		jobs{t, l}.done("accrual", "2026-12-01")
	})
}

// The caller sees its function's error, and people hear that the failure could not be recorded.
func TestAFailureThatCannotBeRecorded(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		ran, err := l.OncePer(t.Context(), "accrual", "2026-12-01", func(context.Context) error {
			testdb.Exec(t, s.DB, "RENAME TABLE job_runs TO away")
			return errWork
		})
		if !ran || err != errWork || len(r.all) != 1 || r.all[0].Point != PointRecordFailed || r.all[0].Err == nil { //nolint:errorlint // the very error
			t.Errorf("ran %v, %v, reports %+v", ran, err, r.all)
		}
	})
}

// A context that is over before the job begins leaves no record, and no report.
func TestAJobThatIsCancelledBeforeItBegins(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, f, r := newFaulty(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		f.set(false, fault{words: "START TRANSACTION", before: cancel})
		ran, err := l.OncePer(ctx, "accrual", "2026-12-01", func(ctx context.Context) error { return ctx.Err() })
		if !ran || !errors.Is(err, context.Canceled) || len(r.all) > 0 {
			t.Errorf("ran %v, %v, reports %+v", ran, err, r.all)
		}
		if ran, err := l.OncePer(ctx, "accrual", "2026-12-01", nil); ran || !errors.Is(err, context.Canceled) || len(r.all) > 0 {
			t.Errorf("ran %v, %v, reports %+v", ran, err, r.all)
		}
		jobs{t, l}.ran("accrual", "2026-12-01", nil)
	})
}

// Two that take a crashed run over at the same moment, behind a server whose locks do not hold: one of them has it.
func TestOneTakesOver(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, f, _ := newFaulty(t, s)
		testdb.Exec(t, s.DB, "INSERT INTO job_runs (job, period, state, token) VALUES ('accrual', '2026-12-01', 'running', 'crashed')")
		f.set(false, fault{words: "UPDATE job_runs SET state = 'running'", before: func() {
			testdb.Exec(t, s.DB, "UPDATE job_runs SET token = 'another'")
		}})
		if ran, err := (jobs{t, l}).once("accrual", "2026-12-01", nil, TakeOver()); ran || !errors.Is(err, errNotOurs) {
			t.Errorf("ran %v, %v", ran, err)
		}
	})
}

// One that waits sees what the other has done.
func TestOncePerWaits(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, _ := locker(t, s.DB, 0)
		began, second := make(chan struct{}), make(chan bool)
		go func() {
			<-began
			ran, err := jobs{t, l}.once("accrual", "2026-12-01", nil, Wait(time.Minute))
			if err != nil {
				t.Error(err)
			}
			second <- ran
		}()
		_, err := l.OncePer(t.Context(), "accrual", "2026-12-01", func(context.Context) error {
			close(began)
			time.Sleep(3 * guardAfter)
			return nil
		})
		if err != nil || <-second {
			t.Errorf("%v, or it ran twice", err)
		}
	})
}
