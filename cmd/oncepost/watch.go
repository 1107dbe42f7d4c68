package main

import (
	"errors"

	"github.com/oncepost/oncepost/internal/watching"
)

type watchCmd struct {
	processFlags `embed:""`
}

// Help is what kong prints below the summary.
func (watchCmd) Help() string {
	return `Relays and workers watch each other already; this is one more that watches, and does nothing else. Run it on a machine of its own, so that people hear of the death of all the others.

Of each condition one process of all tells people, once when it begins and once when it is over; the table ops_conditions says who. While the database is away each process may tell of that by itself. docs/runbook.md has a chapter for each condition.`
}

func (c *watchCmd) Run(a *app) (err error) {
	on, err := c.connect(a, "oncepost-watch", func() error { return nil })
	if on == nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	w, err := watching.New(on.Config)
	if err != nil {
		return err
	}
	a.logger.Info("watch running", "namespace", on.Namespace)
	return w.Run(a.ctx)
}
