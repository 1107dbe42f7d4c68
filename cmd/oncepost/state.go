package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/workflows"
)

type stateCmd struct {
	target `embed:""`

	MessageIDs []string `arg:"" optional:"" name:"message-id" help:"The messages, which are the workflows' IDs."`
	JSON       bool     `name:"json" env:"ONCEPOST_STATE_JSON" help:"Print a line of JSON for each."`
}

// Help is what kong prints below the summary.
func (stateCmd) Help() string {
	return `Asks the workflow what it waits for. ` + "`oncepost explain`" + ` shows the whole way of a message, also of one that has ended.

  oncepost state welcome:c_42
  oncepost state --query "OncepostState = 'parked'" --json`
}

// answer is what is said of one message.
type answer struct {
	MessageID string `json:"message_id"`
	workflows.Status
}

func (c *stateCmd) Run(a *app) error {
	return c.each(a, c.MessageIDs, "", func(ctx context.Context, t client.Client, id string) error {
		s, err := state(ctx, t, id)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(a.stdout).Encode(answer{id, s})
		}
		_, err = fmt.Fprintf(a.stdout, "%s: %s\n", id, inWords(s))
		return err
	})
}

// state asks the workflow, where it runs and has begun; a query of one that waits for its start delay would wait with it.
func state(ctx context.Context, c client.Client, id string) (s workflows.Status, err error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return s, err
	}
	info := d.GetWorkflowExecutionInfo()
	if status := info.GetStatus(); status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return workflows.Status{State: strings.ToLower(status.String())}, nil
	}
	if info.GetHistoryLength() <= 1 { // its start alone
		due := info.GetExecutionTime().AsTime()
		return workflows.Status{State: schemas.StateScheduled, Until: &due}, nil
	}
	v, err := c.QueryWorkflow(ctx, id, "", workflows.QueryState)
	if err != nil {
		if ctx.Err() != nil {
			return s, fmt.Errorf("no worker has answered: is one running? (%w)", err)
		}
		return s, err
	}
	return s, v.Get(&s)
}

func inWords(s workflows.Status) string {
	text := s.State
	if s.Until != nil {
		text += " until " + s.Until.UTC().Format(time.RFC3339)
	}
	for _, e := range s.UnderWay {
		text += fmt.Sprintf("; %s %d under way", e.Step, e.Recipient)
	}
	for _, e := range s.Parked {
		text += fmt.Sprintf("; %s %d parked (%s)", e.Step, e.Recipient, e.Class)
	}
	if s.Cancelled != nil {
		text += "; cancelled by " + s.Cancelled.By
	}
	return text
}
