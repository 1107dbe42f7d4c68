package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/telemetry"
	"github.com/oncepost/oncepost/internal/watching"
	"github.com/oncepost/oncepost/monitor"
	"github.com/oncepost/oncepost/starter"
)

// callTimeout bounds a command's own statements.
const callTimeout = 30 * time.Second

type relayCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Mail     `embed:""`
	config.Sends    `embed:""`
	config.Alerts   `embed:""`
	config.Watch    `embed:""`

	WithWorker bool          `name:"with-worker" env:"ONCEPOST_RELAY_WITH_WORKER" help:"Run a worker in the same process as well. Workflows then begin at once (eager start)."`
	Rebind     bool          `name:"rebind" env:"ONCEPOST_RELAY_REBIND" help:"Accept the namespace that is reached now as the outbox's own from now on. Needed once, after the namespace was rebuilt or changed on purpose."`
	MaxStarts  int           `name:"max-starts" env:"ONCEPOST_RELAY_MAX_STARTS" default:"1000" help:"Bound on starts in flight; the relay finds how many are best."`
	MaxPage    int           `name:"max-page" env:"ONCEPOST_RELAY_MAX_PAGE" default:"800" help:"Bound on rows read at once; an express row overtakes all others but so many."`
	MaxDelete  int           `name:"max-delete" env:"ONCEPOST_RELAY_MAX_DELETE" default:"1000" help:"Bound on rows deleted at once, up to 1000."`
	MaxPoll    time.Duration `name:"max-poll" env:"ONCEPOST_RELAY_MAX_POLL" default:"150ms" help:"Bound on the pause between reads while no rows come."`
	Grace      time.Duration `name:"grace" env:"ONCEPOST_RELAY_GRACE" default:"15s" help:"How long a stop waits for starts in flight, up to 25s."`
}

func (c *relayCmd) Run(a *app) (err error) {
	if c.MaxStarts == 0 || c.MaxPage == 0 || c.MaxDelete == 0 || c.MaxPoll == 0 || c.Grace == 0 { // to starter.Config the default
		return config.UsageError{Err: errors.New("--max-starts, --max-page, --max-delete, --max-poll and --grace must be positive; leave one out for its default")}
	}
	if err := errors.Join(c.CheckSends(), c.CheckWatch()); err != nil {
		return err
	}
	tracing, err := telemetry.Start(a.ctx, telemetry.Config{Service: "oncepost-relay", Version: versionText(), Logger: a.logger})
	if err != nil {
		return err
	}
	defer tracing.Stop()
	registry := prometheus.NewRegistry()
	sdkMetrics, err := watching.SDKMetrics(registry)
	if err != nil {
		return err
	}
	temporal, namespace, err := c.Dial(a.logger, sdkMetrics, tracing.Client)
	if err != nil {
		return err
	}
	defer temporal.Close()
	var acts *activities.Activities
	if c.WithWorker { // its configuration too is checked before anything is waited for
		if acts, err = c.Activities(a.ctx, a.logger); err != nil {
			return err
		}
	}
	alerter, err := c.Alerter(a.logger)
	if err != nil {
		return err
	}
	db, err := c.AwaitMigrated(a.ctx, a.logger, c.DatabaseAway, monitor.ByAlert(alerter))
	if err != nil {
		return unlessStopped(a, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	relay, err := c.relay(a, db, temporal, namespace)
	if err != nil {
		return err
	}
	var tally *serve.Tally
	if c.WithWorker {
		tally = &serve.Tally{}
	}
	w, err := watching.New(watching.Config{
		Watch: c.Watch, DB: db, Client: temporal, Namespace: namespace, Version: versionText(), Logger: a.logger, Alerter: alerter,
		Relay: relay, Tally: tally, Registry: registry,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(a.ctx)
	if c.WithWorker {
		group.Go(func() error {
			return serve.Run(ctx, serve.Config{
				Client: temporal, Namespace: namespace, DB: db, Activities: acts, MaxSends: c.MaxSends, Logger: a.logger,
				Alerter: alerter, Tally: tally,
				Rate: serve.Rate{Fixed: c.Rate, Share: c.Share},
			})
		})
	}
	group.Go(func() error { return relay.Run(ctx) })
	group.Go(func() error { return w.Run(ctx) })
	a.logger.Info("relay running", "namespace", namespace, "with_worker", c.WithWorker)
	return group.Wait()
}

func (c *relayCmd) relay(a *app, db *sql.DB, t client.Client, namespace string) (*starter.Relay, error) {
	return starter.New(db, starter.NewTemporal(t, starter.TemporalConfig{Namespace: namespace, Eager: c.WithWorker}),
		starter.Config{
			MaxStarts: c.MaxStarts, MaxPage: c.MaxPage, MaxDelete: c.MaxDelete, MaxPoll: c.MaxPoll, Grace: c.Grace,
			Rebind: c.Rebind, Logger: a.logger,
		})
}

// unlessStopped drops the error of a wait that a signal has ended.
func unlessStopped(a *app, err error) error {
	if a.ctx.Err() != nil {
		return nil
	}
	return err
}

func withTimeout(a *app, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.ctx, d)
}
