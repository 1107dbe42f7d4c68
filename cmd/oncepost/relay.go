package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/watching"
	"github.com/oncepost/oncepost/starter"
)

// callTimeout bounds a command's own statements.
const callTimeout = 30 * time.Second

type relayCmd struct {
	processFlags `embed:""`
	sendFlags    `embed:""`

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
	if err := c.CheckSends(); err != nil {
		return err
	}
	var acts *activities.Activities
	on, err := c.connect(a, "oncepost-relay", func() (err error) {
		if c.WithWorker {
			acts, err = c.Activities(a.ctx, a.logger)
		}
		return err
	})
	if on == nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if on.Relay, err = c.relay(a, on.DB, on.Client, on.Namespace); err != nil {
		return err
	}
	if c.WithWorker {
		on.Tally = &serve.Tally{}
	}
	w, err := watching.New(on.Config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(a.ctx)
	if c.WithWorker {
		group.Go(func() error { return serve.Run(ctx, c.serving(on, acts)) })
	}
	group.Go(func() error { return on.Relay.Run(ctx) })
	group.Go(func() error { return w.Run(ctx) })
	a.logger.Info("relay running", "namespace", on.Namespace, "with_worker", c.WithWorker)
	return group.Wait()
}

func (c *relayCmd) relay(a *app, db *sql.DB, t client.Client, namespace string) (*starter.Relay, error) {
	return starter.New(db, starter.NewTemporal(t, starter.TemporalConfig{Namespace: namespace, Eager: c.WithWorker}),
		starter.Config{
			MaxStarts: c.MaxStarts, MaxPage: c.MaxPage, MaxDelete: c.MaxDelete, MaxPoll: c.MaxPoll, Grace: c.Grace,
			Rebind: c.Rebind, Logger: a.logger,
		})
}

func withTimeout(a *app, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.ctx, d)
}
