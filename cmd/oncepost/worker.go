package main

import (
	"errors"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

type workerCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Mail     `embed:""`
	config.Sends    `embed:""`
}

var errMaxSends = errors.New("--max-sends must be positive")

func (c *workerCmd) Run(a *app) (err error) {
	if c.MaxSends <= 0 {
		return usageError{errMaxSends}
	}
	temporal, namespace, err := c.Dial(a.logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	acts, err := c.Activities(a.ctx) // the configuration is checked before anything is waited for
	if err != nil {
		return err
	}
	db, err := c.AwaitMigrated(a.ctx, a.logger)
	if err != nil {
		return unlessStopped(a, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if acts.Ledger, err = ledger.New(a.ctx, db); err != nil {
		return err
	}
	return worker.Run(a.ctx, worker.Config{
		Client: temporal, Activities: acts, MaxSends: c.MaxSends, Logger: a.logger,
		Started: func() { a.logger.Info("worker running", "namespace", namespace) },
	}, workflows.Builtin())
}
