package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/failed"
)

type failedRetryCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`

	MessageIDs []string `arg:"" optional:"" name:"message-id" help:"The messages."`
	All        bool     `name:"all" env:"ONCEPOST_FAILED_ALL" help:"Everything that has failed. What a retry cannot change is left, unless --force."`
	Type       string   `name:"type" env:"ONCEPOST_FAILED_TYPE" placeholder:"TYPE" help:"With --all: only messages of this event type."`
	Kind       string   `name:"kind" env:"ONCEPOST_FAILED_KIND" placeholder:"KIND" enum:",row,workflow" default:"" help:"Only rows (row; Temporal is then not asked) or only workflows (workflow)."`
	FailedID   int64    `name:"failed-id" env:"ONCEPOST_FAILED_ID" placeholder:"N" help:"Which row, where one message has several; oncepost failed show numbers them."`
	Force      bool     `name:"force" env:"ONCEPOST_FAILED_FORCE" help:"Also where the retry will most likely be refused again: an ID that was used before, a mail that SES refused for good."`
	Yes        bool     `name:"yes" env:"ONCEPOST_FAILED_YES" help:"With --all: do not ask."`
}

func (c *failedRetryCmd) check(a *app) error {
	f := failed.Filter{EventType: c.Type}
	switch {
	case c.All == (len(c.MessageIDs) > 0):
		return errors.New("give message IDs, or --all")
	case c.Type != "" && !c.All:
		return errors.New("--type goes with --all")
	case c.FailedID != 0 && len(c.MessageIDs) != 1:
		return errors.New("--failed-id goes with one message ID")
	case c.All && !c.Yes && !isTerminal(a):
		return errors.New("--all needs --yes where nobody can be asked")
	}
	if err := checkIDs(c.MessageIDs...); err != nil {
		return err
	}
	return f.Validate()
}

func isTerminal(a *app) bool {
	f, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (c *failedRetryCmd) Run(a *app) error {
	if err := c.check(a); err != nil {
		return config.UsageError{Err: err}
	}
	return sources(a, c.MySQL, c.Temporal, c.Kind, func(rows *failed.Rows, workflows *failed.Workflows) error {
		r := retrier{a, rows, workflows, c.Force}
		ctx, cancel := withTimeout(a, failedTimeout)
		defer cancel()
		if c.All {
			return c.all(ctx, r)
		}
		wrong := 0
		for _, id := range c.MessageIDs {
			wrong += r.say(id, c.one(ctx, r, id))
		}
		return incomplete(wrong, len(c.MessageIDs))
	})
}

// incomplete is the error of a command that did not do all it was asked to; what was wrong has been said.
func incomplete(wrong, of int) error {
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d not done", wrong, of)
}

// one retries a message by its ID, where it is clear what is meant.
func (c *failedRetryCmd) one(ctx context.Context, r retrier, id string) error {
	f, err := find(ctx, r.rows, r.workflows, id, c.Kind, false)
	switch {
	case err != nil:
		return err
	case len(f.Rows) > 0 && f.Workflow != nil && c.FailedID == 0:
		return errors.New("it has a row in outbox_failed and a failed workflow: choose with --kind row or --kind workflow")
	case len(f.Rows) > 0:
		row, err := failed.Choose(id, f.Rows, c.FailedID)
		if err != nil {
			return err
		}
		return r.row(ctx, row.Item)
	case c.FailedID != 0:
		return errors.New("it has no row in outbox_failed, only a failed workflow: leave --failed-id out")
	}
	return r.workflow(ctx, f.Workflow)
}

func (c *failedRetryCmd) all(ctx context.Context, r retrier) error {
	items, _, err := failed.List(ctx, r.rows, r.workflows, failed.Filter{EventType: c.Type, Kind: c.Kind})
	if err != nil {
		return advised(err)
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(r.stdout, "nothing has failed")
		return err
	}
	if !c.Yes && !ask(r.app, fmt.Sprintf("Retry %d failed messages? [y/N] ", len(items))) {
		return errors.New("nothing was retried")
	}
	wrong := 0
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if item.Kind == failed.KindRow {
			wrong += r.say(item.MessageID, r.row(ctx, item))
			continue
		}
		wrong += r.say(item.MessageID, r.workflow(ctx, &failed.Workflow{Item: item}))
	}
	return incomplete(wrong, len(items))
}

type retrier struct {
	*app
	rows      *failed.Rows
	workflows *failed.Workflows
	force     bool
}

// say tells what went wrong with a message, and counts it.
func (r retrier) say(id string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(r.stderr, "oncepost: %s: %v\n", id, advised(err))
	return 1
}

func (r retrier) row(ctx context.Context, i failed.Item) error {
	if err := r.rows.Retry(ctx, i.FailedID, r.force); err != nil {
		return err
	}
	r.logger.Info("failed row requeued", "message_id", i.MessageID, "event_type", i.EventType, "failed_id", i.FailedID, "reason", i.Reason)
	_, err := fmt.Fprintf(r.stdout, "%s is back in outbox_messages\n", i.MessageID)
	return err
}

func (r retrier) workflow(ctx context.Context, w *failed.Workflow) error {
	run, err := r.workflows.Retry(ctx, w, "oncepost failed retry", r.force)
	if err != nil {
		return err
	}
	r.logger.Info("failed workflow reset", "message_id", w.MessageID, "event_type", w.EventType, "run_id", run, "failed_run_id", w.RunID)
	_, err = fmt.Fprintf(r.stdout, "%s runs again, as run %s\n", w.MessageID, run)
	return err
}

type failedDiscardCmd struct {
	config.MySQL `embed:""`

	MessageIDs []string `arg:"" name:"message-id" help:"The messages."`
	FailedID   int64    `name:"failed-id" env:"ONCEPOST_FAILED_ID" placeholder:"N" help:"Which row, where one message has several; oncepost failed show numbers them."`
	By         string   `name:"by" env:"ONCEPOST_FAILED_BY" required:"" placeholder:"NAME" help:"Who decides."`
	Why        string   `name:"why" env:"ONCEPOST_FAILED_WHY" required:"" placeholder:"REASON" help:"For what reason. Both are kept in the log alone."`
}

func (c *failedDiscardCmd) Run(a *app) error {
	if c.By == "" || c.Why == "" || utf8.RuneCountInString(c.By) > 200 || utf8.RuneCountInString(c.Why) > 1000 {
		return config.UsageError{Err: errors.New("--by takes 1 to 200 characters, and --why 1 to 1000")}
	}
	if c.FailedID != 0 && len(c.MessageIDs) != 1 {
		return config.UsageError{Err: errors.New("--failed-id goes with one message ID")}
	}
	if err := checkIDs(c.MessageIDs...); err != nil {
		return err
	}
	return sources(a, c.MySQL, config.Temporal{}, failed.KindRow, func(rows *failed.Rows, _ *failed.Workflows) error {
		ctx, cancel := withTimeout(a, failedTimeout)
		defer cancel()
		wrong := 0
		for _, id := range c.MessageIDs {
			wrong += retrier{app: a}.say(id, c.one(ctx, a, rows, id))
		}
		return incomplete(wrong, len(c.MessageIDs))
	})
}

func (c *failedDiscardCmd) one(ctx context.Context, a *app, rows *failed.Rows, id string) error {
	all, err := rows.Show(ctx, id, false)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("it is not in outbox_failed. Of a workflow that has failed there is nothing to delete: it stays in Temporal's " +
			"history until the namespace's retention is over")
	}
	row, err := failed.Choose(id, all, c.FailedID)
	if err != nil {
		return err
	}
	if err := rows.Discard(ctx, row.FailedID); err != nil {
		return err
	}
	a.logger.Info("failed row discarded", "message_id", id, "event_type", row.EventType, "failed_id", row.FailedID, "reason", row.Reason,
		"by", failed.Mask(c.By), "why", failed.Mask(c.Why))
	_, err = fmt.Fprintf(a.stdout, "%s is discarded (row %d)\n", id, row.FailedID)
	return err
}
