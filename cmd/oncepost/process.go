package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/telemetry"
	"github.com/oncepost/oncepost/internal/watching"
	"github.com/oncepost/oncepost/monitor"
)

// processFlags are those of a process that goes on until it is stopped: it has a database and a Temporal, and watches.
type processFlags struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Alerts   `embed:""`
	config.Watch    `embed:""`
}

// connected is such a process's part of watching.Config. A relay and a worker are still to be set.
type connected struct {
	watching.Config

	ends []func() error
}

// connect opens all that such a process needs. Its configuration is checked, check's included, before anything is waited for. It
// returns nil where a stop came first.
func (f processFlags) connect(a *app, service string, check func() error) (c *connected, err error) {
	if err := f.CheckWatch(); err != nil {
		return nil, err
	}
	c = &connected{Config: watching.Config{Watch: f.Watch, Version: versionText(), Logger: a.logger, Registry: prometheus.NewRegistry()}}
	defer func() {
		if err != nil && c != nil {
			c, err = nil, errors.Join(err, c.close())
		}
	}()
	tracing, err := telemetry.Start(a.ctx, telemetry.Config{Service: service, Version: c.Version, Logger: a.logger})
	if err != nil {
		return c, err
	}
	c.ends = append(c.ends, func() error { tracing.Stop(); return nil })
	sdkMetrics, err := watching.SDKMetrics(c.Registry)
	if err != nil {
		return c, err
	}
	if c.Client, c.Namespace, err = f.Dial(a.logger, sdkMetrics, tracing.Client); err != nil {
		return c, err
	}
	c.ends = append(c.ends, func() error { c.Client.Close(); return nil })
	if err := check(); err != nil {
		return c, err
	}
	if c.Alerter, err = f.Alerter(a.logger); err != nil {
		return c, err
	}
	if c.DB, err = f.AwaitMigrated(a.ctx, a.logger, f.DatabaseAway, monitor.ByAlert(c.Alerter)); err != nil {
		if a.ctx.Err() != nil {
			return nil, c.close()
		}
		return c, err
	}
	c.ends = append(c.ends, c.DB.Close)
	return c, nil
}

// close closes what connect has opened, the last first.
func (c *connected) close() error {
	var errs []error
	for i := len(c.ends) - 1; i >= 0; i-- {
		errs = append(errs, c.ends[i]())
	}
	return errors.Join(errs...)
}
