package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/workflows"
)

// target is which messages a command is about: those named, or those of a visibility query.
type target struct {
	config.Temporal `embed:""`

	Query string `name:"query" env:"ONCEPOST_QUERY" placeholder:"QUERY" help:"In place of message IDs: all running workflows of a visibility query, such as OncepostState = 'parked'."`
	Yes   bool   `name:"yes" env:"ONCEPOST_YES" help:"With --query: do not ask."`
}

// order is who asks for something, and why.
type order struct {
	By  string `name:"by" env:"ONCEPOST_BY" required:"" placeholder:"NAME" help:"Who decides."`
	Why string `name:"why" env:"ONCEPOST_WHY" required:"" placeholder:"REASON" help:"For what reason. It is kept in the workflow's history."`
}

// allTimeout bounds a command on many messages.
const allTimeout = 10 * time.Minute

func (t *target) check(a *app, ids []string, asks bool) error {
	switch {
	case (t.Query == "") == (len(ids) == 0):
		return config.UsageError{Err: errors.New("give message IDs, or --query")}
	case t.Query == "" && t.Yes:
		return config.UsageError{Err: errors.New("--yes goes with --query")}
	case t.Query != "" && asks && !t.Yes && !isTerminal(a):
		return config.UsageError{Err: errors.New("--query needs --yes where nobody can be asked")}
	}
	if err := checkIDs(ids...); err != nil {
		return config.UsageError{Err: err}
	}
	return nil
}

// each does something to each message. What asks for what is asked before many are changed; "" asks nothing.
func (t *target) each(a *app, ids []string, asks string, do func(ctx context.Context, c client.Client, id string) error) error {
	if err := t.check(a, ids, asks != ""); err != nil {
		return err
	}
	temporal, namespace, err := t.Dial(a.logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := withTimeout(a, allTimeout)
	defer cancel()
	if t.Query != "" {
		if ids, err = running(ctx, temporal, t.Query); err != nil {
			return err
		}
		if len(ids) == 0 {
			_, err := fmt.Fprintln(a.stdout, "no running workflow fits the query")
			return err
		}
		if asks != "" && !t.Yes && !ask(a, fmt.Sprintf("%s %d messages (%s)? [y/N] ", asks, len(ids), some(ids))) {
			return errors.New("nothing was changed")
		}
	}
	wrong := 0
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		call, end := context.WithTimeout(ctx, callTimeout)
		err := do(call, temporal, id)
		end()
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			err = fmt.Errorf("no running workflow of namespace %s has this ID: it has ended, or was never started; `oncepost explain` tells", namespace)
		}
		if err != nil {
			wrong++
			fmt.Fprintf(a.stderr, "oncepost: %s: %v\n", id, err)
		}
	}
	return incomplete(wrong, len(ids))
}

// running are the IDs of the running workflows of oncepost's that fit a visibility query.
func running(ctx context.Context, c client.Client, query string) (ids []string, err error) {
	q := fmt.Sprintf("(%s) AND ExecutionStatus = 'Running' AND %s IS NOT NULL", query, schemas.AttributeState)
	var page []byte
	for {
		r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: q, NextPageToken: page})
		var invalid *serviceerror.InvalidArgument
		if errors.As(err, &invalid) {
			return nil, config.UsageError{Err: fmt.Errorf("--query is no visibility query (https://docs.temporal.io/list-filter): %w", err)}
		}
		if err != nil {
			return nil, fmt.Errorf("list workflows: %w", err)
		}
		for _, w := range r.GetExecutions() {
			ids = append(ids, w.GetExecution().GetWorkflowId())
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
	}
}

// some names a few IDs.
func some(ids []string) string {
	const few = 3
	if len(ids) <= few {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:few], ", ") + ", …"
}

func ask(a *app, question string) bool {
	fmt.Fprint(a.stderr, question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	return err == nil && strings.EqualFold(strings.TrimSpace(answer), "y")
}

// update sends an update and waits for its answer.
func update(ctx context.Context, c client.Client, id, name string, arg any) error {
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{arg},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no worker has answered: it is done once one does (%w)", err)
	}
	return err
}

// orderCmd is a command that gives an order to messages.
type orderCmd struct {
	target `embed:""`
	order  `embed:""`

	MessageIDs []string `arg:"" optional:"" name:"message-id" help:"The messages, which are the workflows' IDs."`
}

// give sends the update of a name to each message. It asks with a question before many get it, and says what was done.
func (c *orderCmd) give(a *app, name, question, done string) error {
	return c.each(a, c.MessageIDs, question, func(ctx context.Context, t client.Client, id string) error {
		if err := update(ctx, t, id, name, workflows.Order{By: c.By, Why: c.Why}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "%s %s\n", id, done)
		return err
	})
}

type sendNowCmd struct {
	orderCmd `embed:""`
}

// Help is what kong prints below the summary.
func (sendNowCmd) Help() string {
	return `Ends the wait for deliver_at, for a reminder, or for the next attempt. What a worker has begun to send goes on.

  oncepost send-now welcome:c_42 --by ann --why "the customer waits on the phone"
  oncepost send-now --query "OncepostState = 'scheduled'" --by ann --why "the campaign begins today"`
}

func (c *sendNowCmd) Run(a *app) error {
	return c.give(a, workflows.UpdateSendNow, "Send now", "waits no more")
}

type cancelSendCmd struct {
	orderCmd `embed:""`
}

// Help is what kong prints below the summary.
func (cancelSendCmd) Help() string {
	return `Takes back every mail that no worker has begun to send, and the reminder. The workflow completes, and its result says who cancelled it and why.

  oncepost cancel-send welcome:c_42 --by ann --why "entered twice"
  oncepost cancel-send --query "WorkflowType = 'welcome' AND OncepostState = 'scheduled'" --by ann --why "the campaign is off"`
}

func (c *cancelSendCmd) Run(a *app) error {
	return c.give(a, workflows.UpdateCancelSend, "Cancel", "is cancelled: what no worker had begun is not sent")
}
