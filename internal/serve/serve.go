// Package serve runs a worker with all that belongs to it in a deployment: the ledger in MySQL, the housekeeping, the stops
// of sending, and the rate of sends.
package serve

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/stops"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

// Config of Run. The first four and Logger are required.
type Config struct {
	Client    client.Client
	Namespace string
	DB        *sql.DB // migrated
	// Activities need no Ledger yet.
	Activities *activities.Activities
	Logger     *slog.Logger
	// Alerter tells people of what waits for them. Default: the log alone does.
	Alerter *alerts.Alerter
	// MaxSends, Look, Grace and Started are worker.Config's.
	MaxSends int
	Look     time.Duration
	Grace    time.Duration
	Started  func()
	// Report is worker.Config's. Default: the log. People hear of stops by the watch, once for all workers.
	Report func(r worker.StopReport)
	// Stops says how long stops last.
	Stops stops.Config
	Rate  Rate
	// Tally counts what is sent. Optional.
	Tally *Tally
	// RateEvery is how often the rate is looked at. Default 1 minute.
	RateEvery time.Duration
}

// Run runs the worker of the shipped event types until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	book, err := ledger.New(ctx, cfg.DB)
	switch {
	case ctx.Err() != nil:
		return nil // stopped before it began
	case err != nil:
		return err
	}
	acts := *cfg.Activities
	acts.Ledger = book
	if cfg.Rate.Share == 0 {
		cfg.Rate.Share = 0.9
	}
	if cfg.RateEvery == 0 {
		cfg.RateEvery = rateEvery
	}
	if cfg.Tally == nil {
		cfg.Tally = &Tally{}
	}
	account, _ := acts.Mailer.(worker.Account) // another Mailer has no quota to ask for
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		keepSchedule(ctx, cfg)
		return nil
	})
	records := stops.New(cfg.DB, cfg.Stops)
	group.Go(func() error {
		(&quota{
			client: cfg.Client, namespace: cfg.Namespace, account: account, stops: records, rate: cfg.Rate, logger: cfg.Logger, every: cfg.RateEvery, tally: cfg.Tally,
		}).run(ctx)
		return nil
	})
	group.Go(func() error {
		return worker.Run(ctx, worker.Config{
			Client: cfg.Client, Activities: &acts, Stops: records, Look: cfg.Look, Report: cfg.Report,
			MaxSends: cfg.MaxSends, Grace: cfg.Grace, Started: cfg.Started, Logger: cfg.Logger,
			Parked: parked(cfg), Answered: cfg.Tally.answered,
			Own: []any{&housekeeping{cfg.DB, Keeper{cfg.Client, cfg.Namespace}, cfg.Logger}},
		}, workflows.Builtin().With(workflows.Type{Name: workflows.HousekeepingName, Workflow: workflows.Housekeeping, NoMail: true}))
	})
	return group.Wait()
}
