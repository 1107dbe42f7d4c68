package nightly

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oncepost/oncepost/locks"
)

// ByLock is what cron starts on every machine: one of them does the job of that day.
func (j Job) ByLock(ctx context.Context, l *locks.Locker, day string, logger *slog.Logger) error {
	ran, err := l.OncePer(ctx, "leave-accrual", day, func(ctx context.Context) error {
		added, err := j.Accrue(ctx, day)
		logger.InfoContext(ctx, "leave accrued", "day", day, "entries", added, "error", err)
		return err
	}, locks.TakeOver()) // Accrue may be repeated, so a run that crashed needs nobody's eyes
	switch {
	case errors.As(err, new(*locks.NotAcquiredError)):
		logger.InfoContext(ctx, "another machine is at it", "day", day)
		return nil
	case err == nil && !ran:
		logger.InfoContext(ctx, "it has been done", "day", day)
	}
	return err
}
