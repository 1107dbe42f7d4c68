package main

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/watching"
)

// sendFlags are those of a process that sends.
type sendFlags struct {
	config.Mail  `embed:""`
	config.Sends `embed:""`
}

// serving is the worker of such a process.
func (f sendFlags) serving(on *connected, acts *activities.Activities) serve.Config {
	return serve.Config{
		Client: on.Client, Namespace: on.Namespace, DB: on.DB, Activities: acts, MaxSends: f.MaxSends, Logger: on.Logger, Alerter: on.Alerter,
		Rate: serve.Rate{Fixed: f.Rate, Share: f.Share}, Tally: on.Tally,
	}
}

type workerCmd struct {
	processFlags `embed:""`
	sendFlags    `embed:""`
}

func (c *workerCmd) Run(a *app) (err error) {
	if err := c.CheckSends(); err != nil {
		return err
	}
	var acts *activities.Activities
	on, err := c.connect(a, "oncepost-worker", func() (err error) {
		acts, err = c.Activities(a.ctx, a.logger)
		return err
	})
	if on == nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	on.Tally = &serve.Tally{}
	w, err := watching.New(on.Config)
	if err != nil {
		return err
	}
	cfg := c.serving(on, acts)
	cfg.Started = func() { a.logger.Info("worker running", "namespace", on.Namespace) }
	group, ctx := errgroup.WithContext(a.ctx)
	group.Go(func() error { return serve.Run(ctx, cfg) })
	group.Go(func() error { return w.Run(ctx) })
	return group.Wait()
}
