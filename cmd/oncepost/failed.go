package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/failed"
)

type failedCmd struct {
	List    failedListCmd    `cmd:"" help:"List what has failed: rows that never started, and workflows that closed without success."`
	Show    failedShowCmd    `cmd:"" help:"Show everything of one failed message."`
	Retry   failedRetryCmd   `cmd:"" help:"Put failed rows back into outbox_messages, and reset failed workflows. What was sent is not sent again."`
	Discard failedDiscardCmd `cmd:"" help:"Delete failed rows for good."`
}

// failedTimeout bounds a command over many messages.
const failedTimeout = 10 * time.Minute

// sources opens what a kind of failures needs: rows need no Temporal.
func sources(a *app, m config.MySQL, t config.Temporal, kind string, work func(*failed.Rows, *failed.Workflows) error) (err error) {
	db, err := m.Open(a.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if kind == failed.KindRow {
		return work(&failed.Rows{DB: db}, nil)
	}
	temporal, namespace, err := t.Dial(a.logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	return work(&failed.Rows{DB: db}, &failed.Workflows{Client: temporal, Namespace: namespace})
}

type failedListCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`

	Type  string `name:"type" env:"ONCEPOST_FAILED_TYPE" placeholder:"TYPE" help:"Only messages of this event type."`
	Kind  string `name:"kind" env:"ONCEPOST_FAILED_KIND" placeholder:"KIND" enum:",row,workflow" default:"" help:"Only rows (row; Temporal is then not asked) or only workflows (workflow)."`
	Limit int    `name:"limit" env:"ONCEPOST_FAILED_LIMIT" default:"50" help:"At most so many, 1 to 10000."`
	JSON  bool   `name:"json" env:"ONCEPOST_FAILED_JSON" help:"Print JSON."`
}

func (c *failedListCmd) Run(a *app) error {
	f := failed.Filter{EventType: c.Type, Kind: c.Kind, Limit: c.Limit}
	if err := f.Validate(); err != nil {
		return config.UsageError{Err: err}
	}
	if c.Limit < 1 || c.Limit > 10_000 {
		return config.UsageError{Err: errors.New("--limit must be 1 to 10000")}
	}
	return sources(a, c.MySQL, c.Temporal, c.Kind, func(rows *failed.Rows, workflows *failed.Workflows) error {
		ctx, cancel := withTimeout(a, failedTimeout)
		defer cancel()
		all, more, err := failed.List(ctx, rows, workflows, f)
		if err != nil {
			return advised(err)
		}
		if c.JSON {
			return printJSON(a.stdout, struct {
				Failed []failed.Item `json:"failed"`
				More   bool          `json:"more"`
			}{append([]failed.Item{}, all...), more})
		}
		return printFailed(a.stdout, all, more)
	})
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printFailed(w io.Writer, all []failed.Item, more bool) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "nothing has failed")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAILED AT\tKIND\tTYPE\tREASON\tCLASS\tMESSAGE ID") // Flush returns the error
	for _, i := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", i.FailedAt.UTC().Format(time.RFC3339), i.Kind, i.EventType, i.Reason, i.Class, i.MessageID)
	}
	if more {
		fmt.Fprintf(t, "\nThere are more than these %d: see --limit, --type and --kind.\n", len(all))
	}
	return t.Flush()
}

type failedShowCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`

	MessageID string `arg:"" name:"message-id" help:"The message, which is the workflow's ID."`
	Kind      string `name:"kind" env:"ONCEPOST_FAILED_KIND" placeholder:"KIND" enum:",row,workflow" default:"" help:"Only rows (row; Temporal is then not asked) or only workflows (workflow)."`
	Payload   bool   `name:"payload" env:"ONCEPOST_FAILED_PAYLOAD" help:"Show the payload too, with the addresses that are in it."`
	JSON      bool   `name:"json" env:"ONCEPOST_FAILED_JSON" help:"Print JSON."`
}

// found is all of one message that has failed.
type found struct {
	Rows     []failed.Row     `json:"rows,omitempty"`
	Workflow *failed.Workflow `json:"workflow,omitempty"`
}

// absent says where nothing was found, by the kind that was looked for.
var absent = map[string]string{
	"":                  "it is not in outbox_failed, and no workflow of that ID has failed with its last run",
	failed.KindRow:      "it is not in outbox_failed",
	failed.KindWorkflow: "no workflow of that ID has failed with its last run",
}

func find(ctx context.Context, rows *failed.Rows, workflows *failed.Workflows, id, kind string, payload bool) (f found, err error) {
	if kind != failed.KindWorkflow {
		if f.Rows, err = rows.Show(ctx, id, payload); err != nil {
			return f, err
		}
	}
	if kind != failed.KindRow {
		if f.Workflow, err = workflows.Show(ctx, id); err != nil {
			return f, err
		}
	}
	if len(f.Rows) == 0 && f.Workflow == nil {
		return f, errors.New("it has not failed: " + absent[kind] + "; `oncepost explain` shows what is known of it")
	}
	return f, nil
}

func (c *failedShowCmd) Run(a *app) error {
	if err := checkIDs(c.MessageID); err != nil {
		return err
	}
	return sources(a, c.MySQL, c.Temporal, c.Kind, func(rows *failed.Rows, workflows *failed.Workflows) error {
		ctx, cancel := withTimeout(a, callTimeout)
		defer cancel()
		f, err := find(ctx, rows, workflows, c.MessageID, c.Kind, c.Payload)
		if err != nil {
			return fmt.Errorf("%s: %w", c.MessageID, advised(err))
		}
		if c.JSON {
			return printJSON(a.stdout, f)
		}
		return f.print(a.stdout)
	})
}

func (f found) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(t, "%s\t%v\n", name, value) } // Flush returns the error
	for _, r := range f.Rows {
		line("ROW", r.FailedID)
		line("  message", r.MessageID)
		line("  type", r.EventType)
		line("  reason", r.Reason)
		line("  detail", r.Detail)
		line("  created", r.CreatedAt.Format(time.RFC3339Nano))
		line("  failed", r.FailedAt.Format(time.RFC3339Nano))
		if r.DeliverAt != nil {
			line("  due", r.DeliverAt.Format(time.RFC3339Nano))
		}
		line("  priority", r.Priority)
		if r.Headers != nil {
			line("  headers", string(r.Headers))
		}
		line("  payload", fmt.Sprintf("%d bytes", r.Bytes))
		if r.Payload != nil {
			line("", *r.Payload)
		}
	}
	if wf := f.Workflow; wf != nil {
		line("WORKFLOW", wf.MessageID)
		line("  type", wf.EventType)
		line("  status", wf.Reason)
		line("  class", wf.Class)
		line("  failure", wf.Error)
		line("  run", wf.RunID)
		line("  failed", wf.FailedAt.Format(time.RFC3339Nano))
		line("  more", "oncepost explain "+wf.MessageID)
	}
	return t.Flush()
}
