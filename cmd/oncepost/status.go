package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/monitor"
)

type statusCmd struct {
	config.MySQL      `embed:""`
	config.Temporal   `embed:""`
	config.Thresholds `embed:"" prefix:"watch-"`

	JSON  bool          `name:"json" env:"ONCEPOST_STATUS_JSON" help:"Print JSON: the same as /status.json of a relay or worker."`
	Watch time.Duration `name:"watch" env:"ONCEPOST_STATUS_WATCH" placeholder:"PAUSE" help:"Print it again and again with such a pause, such as 2s, until Ctrl-C."`
}

// Help is what kong prints below the summary.
func (statusCmd) Help() string {
	return `Exit codes: 0, all is well; 3, there is something that a person should know of; 1, the status could not be read; 2, the call was wrong.

How long something has lasted is what the relays, workers and watches that live have seen; where none lives, one look sees no duration.`
}

// codeUnwell is the exit code where there is something to know of.
const codeUnwell = 3

func (c *statusCmd) Run(a *app) error {
	if err := c.Monitor().Validate(); err != nil {
		return config.UsageError{Err: err}
	}
	if c.Watch < 0 {
		return config.UsageError{Err: errors.New("--watch must be positive")}
	}
	temporal, namespace, err := c.Dial(a.logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	db, err := c.Open(a.logger)
	if err != nil {
		return err
	}
	defer db.Close()
	look := monitor.Config{DB: db, Client: temporal, Namespace: namespace, Logger: a.logger, Thresholds: c.Monitor()}
	for {
		s, err := c.once(a, look)
		switch {
		case a.ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case c.Watch == 0 && len(s.All()) > 0:
			return config.ExitError{Code: codeUnwell}
		case c.Watch == 0:
			return nil
		}
		timer := time.NewTimer(c.Watch)
		select {
		case <-a.ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (c *statusCmd) once(a *app, look monitor.Config) (*monitor.State, error) {
	ctx, cancel := withTimeout(a, callTimeout)
	defer cancel()
	s, err := monitor.Look(ctx, look)
	if err != nil || a.ctx.Err() != nil {
		return s, err
	}
	if c.JSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return s, e.Encode(s)
	}
	if c.Watch > 0 {
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // the screen is cleared; Print returns the error of a broken pipe
	}
	return s, s.Print(a.stdout)
}
