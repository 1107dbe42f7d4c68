package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/telemetry"
	"github.com/oncepost/oncepost/internal/watching"
	"github.com/oncepost/oncepost/monitor"
)

type workerCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Mail     `embed:""`
	config.Sends    `embed:""`
	config.Alerts   `embed:""`
	config.Watch    `embed:""`
}

func (c *workerCmd) Run(a *app) (err error) {
	if err := errors.Join(c.CheckSends(), c.CheckWatch()); err != nil {
		return err
	}
	tracing, err := telemetry.Start(a.ctx, telemetry.Config{Service: "oncepost-worker", Version: versionText(), Logger: a.logger})
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
	acts, err := c.Activities(a.ctx, a.logger) // the configuration is checked before anything is waited for
	if err != nil {
		return err
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
	tally := &serve.Tally{}
	w, err := watching.New(watching.Config{
		Watch: c.Watch, DB: db, Client: temporal, Namespace: namespace, Version: versionText(), Logger: a.logger, Alerter: alerter,
		Tally: tally, Registry: registry,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(a.ctx)
	group.Go(func() error {
		return serve.Run(ctx, serve.Config{
			Client: temporal, Namespace: namespace, DB: db, Activities: acts, MaxSends: c.MaxSends, Logger: a.logger, Alerter: alerter,
			Rate: serve.Rate{Fixed: c.Rate, Share: c.Share}, Tally: tally,
			Started: func() { a.logger.Info("worker running", "namespace", namespace) },
		})
	})
	group.Go(func() error { return w.Run(ctx) })
	return group.Wait()
}
