package main

import (
	"errors"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/telemetry"
)

type workerCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Mail     `embed:""`
	config.Sends    `embed:""`
	config.Alerts   `embed:""`
}

func (c *workerCmd) Run(a *app) (err error) {
	if err := c.CheckSends(); err != nil {
		return err
	}
	tracing, err := telemetry.Start(a.ctx, telemetry.Config{Service: "oncepost-worker", Logger: a.logger})
	if err != nil {
		return err
	}
	defer tracing.Stop()
	temporal, namespace, err := c.Dial(a.logger, tracing.Client)
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
	db, err := c.AwaitMigrated(a.ctx, a.logger)
	if err != nil {
		return unlessStopped(a, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return serve.Run(a.ctx, serve.Config{
		Client: temporal, Namespace: namespace, DB: db, Activities: acts, MaxSends: c.MaxSends, Logger: a.logger, Alerter: alerter,
		Rate:    serve.Rate{Fixed: c.Rate, Share: c.Share},
		Started: func() { a.logger.Info("worker running", "namespace", namespace) },
	})
}
