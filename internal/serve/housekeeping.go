package serve

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/workflows"
)

const (
	sweepEvery  = time.Hour
	sweepJitter = 10 * time.Minute
	sweepBatch  = 500
	sweepPause  = time.Second // between two batches
	sweepCall   = 10 * time.Second
	scheduleTry = 15 * time.Second
)

// housekeeping has the activity that deletes what is old: a few rows at a time, by the database's clock, and none of
// outbox_messages.
type housekeeping struct {
	db     *sql.DB
	keeper ledger.Keeper
	logger *slog.Logger
}

// old is what goes from a table. Each statement takes the oldest rows first, and at most as many as its placeholder says.
var old = []struct {
	what, query string
	of          func(*workflows.Swept) *int64
}{
	{
		"messages that failed 90 days ago", "DELETE FROM outbox_failed WHERE failed_at < NOW(6) - INTERVAL 90 DAY ORDER BY failed_id LIMIT ?",
		func(s *workflows.Swept) *int64 { return &s.Failed },
	},
	{
		"runs of jobs that began 90 days ago", "DELETE FROM job_runs WHERE started_at < NOW(6) - INTERVAL 90 DAY ORDER BY started_at LIMIT ?",
		func(s *workflows.Swept) *int64 { return &s.JobRuns },
	},
	{
		"processes that were last seen a day ago", "DELETE FROM processes WHERE seen_at < NOW(6) - INTERVAL 1 DAY LIMIT ?",
		func(s *workflows.Swept) *int64 { return &s.Processes },
	},
}

// Sweep is the activity.
func (h *housekeeping) Sweep(ctx context.Context) (s workflows.Swept, err error) {
	ctx, stop := heartbeating(ctx)
	defer stop()
	s, err = SweepOld(ctx, h.db)
	sends, purgeErr := ledger.Purge{DB: h.db, Keeper: h.keeper}.Round(ctx)
	s.Sends = sends
	if err = errors.Join(err, purgeErr); err == nil {
		h.logger.Info("housekeeping done", "sends", s.Sends, "outbox_failed", s.Failed, "job_runs", s.JobRuns, "processes", s.Processes)
	}
	return s, err
}

// SweepOld deletes what is old of all tables but the ledger.
func SweepOld(ctx context.Context, db *sql.DB) (s workflows.Swept, err error) {
	var errs []error // one table's trouble is not the others'
	for _, o := range old {
		n, err := deleteOld(ctx, db, o.query)
		*o.of(&s) = n
		if err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", o.what, err))
		}
	}
	return s, errors.Join(errs...)
}

// deleteOld deletes in small batches, each in a short transaction that takes no gap lock.
func deleteOld(ctx context.Context, db *sql.DB, query string) (total int64, err error) {
	for {
		n, err := deleteBatch(ctx, db, query)
		total += n
		if err != nil || n < sweepBatch {
			return total, err
		}
		timer := time.NewTimer(sweepPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return total, ctx.Err()
		case <-timer.C:
		}
	}
}

func deleteBatch(ctx context.Context, db *sql.DB, query string) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepCall)
	defer cancel()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return 0, err
	}
	r, err := tx.ExecContext(ctx, query, sweepBatch)
	if err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	if n, err = r.RowsAffected(); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	return n, tx.Commit()
}

// heartbeating tells Temporal that the activity lives, until stop is called.
func heartbeating(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ticks := time.NewTicker(sweepCall)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return ctx, cancel
}

// keepSchedule makes the Schedule where there is none, once Temporal can be reached. One that is there stays as it is: a person may
// have changed it.
func keepSchedule(ctx context.Context, cfg Config) {
	for said := false; ; {
		err := makeSchedule(ctx, cfg.Client)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !said {
			cfg.Logger.Warn("the Schedule of the housekeeping cannot be made, will try again", "schedule", workflows.HousekeepingSchedule, "error", err)
			said = true
		}
		timer := time.NewTimer(scheduleTry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func makeSchedule(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, scheduleTry)
	defer cancel()
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: workflows.HousekeepingSchedule,
		Spec: client.ScheduleSpec{
			Intervals: []client.ScheduleIntervalSpec{{Every: sweepEvery}}, Jitter: sweepJitter,
		},
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		Action: &client.ScheduleWorkflowAction{
			ID: workflows.HousekeepingSchedule, Workflow: workflows.HousekeepingName, TaskQueue: schemas.WorkflowTaskQueue,
			StaticSummary: "delete what is old in oncepost's tables",
		},
		Note: "deletes ledger rows of forgotten workflows, failed messages and runs of jobs after 90 days",
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return nil
	}
	return err
}
