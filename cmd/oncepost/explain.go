package main

import (
	"encoding/json"
	"errors"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/explain"
)

type explainCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`

	MessageID string `arg:"" name:"message-id" help:"The message, which is the workflow's ID."`
	JSON      bool   `name:"json" env:"ONCEPOST_EXPLAIN_JSON" help:"Print JSON."`
	UI        string `name:"ui" env:"ONCEPOST_TEMPORAL_UI" placeholder:"URL" help:"The Temporal web UI, for a link: http://localhost:8233 or https://cloud.temporal.io."`
}

func (c *explainCmd) Run(a *app) (err error) {
	if err := checkIDs(c.MessageID); err != nil {
		return err
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
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := withTimeout(a, callTimeout)
	defer cancel()
	report, err := explain.Sources{DB: db, Client: temporal, Namespace: namespace, UI: c.UI}.Explain(ctx, c.MessageID)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	return report.Print(a.stdout)
}
