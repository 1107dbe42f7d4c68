package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/watching"
	"github.com/oncepost/oncepost/monitor"
)

type watchCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Alerts   `embed:""`
	config.Watch    `embed:""`
}

// Help is what kong prints below the summary.
func (watchCmd) Help() string {
	return `Relays and workers watch each other already; this is one more that watches, and does nothing else. Run it on a machine of its own, so that people hear of the death of all the others.

Of each condition one process of all tells people, once when it begins and once when it is over; the table ops_conditions says who. While the database is away each process may tell of that by itself. docs/runbook.md has a chapter for each condition.`
}

func (c *watchCmd) Run(a *app) (err error) {
	if err := c.CheckWatch(); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	sdkMetrics, err := watching.SDKMetrics(registry)
	if err != nil {
		return err
	}
	temporal, namespace, err := c.Dial(a.logger, sdkMetrics)
	if err != nil {
		return err
	}
	defer temporal.Close()
	alerter, err := c.Alerter(a.logger)
	if err != nil {
		return err
	}
	db, err := c.AwaitMigrated(a.ctx, a.logger, c.DatabaseAway, monitor.ByAlert(alerter))
	if err != nil {
		return unlessStopped(a, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := watching.New(watching.Config{
		Watch: c.Watch, DB: db, Client: temporal, Namespace: namespace, Version: versionText(), Logger: a.logger, Alerter: alerter, Registry: registry,
	})
	if err != nil {
		return err
	}
	a.logger.Info("watch running", "namespace", namespace)
	return w.Run(a.ctx)
}
