package main

import (
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/workflows"
)

type resolveCmd struct {
	config.Temporal `embed:""`

	MessageID string `arg:"" name:"message-id" help:"The message, which is the workflow's ID."`
	Decision  string `arg:"" name:"decision" enum:"sent,resend" help:"sent: it was sent, nothing more is done. resend: it is sent once more."`
	By        string `name:"by" env:"ONCEPOST_RESOLVE_BY" required:"" placeholder:"NAME" help:"Who decides."`
	Why       string `name:"why" env:"ONCEPOST_RESOLVE_WHY" required:"" placeholder:"REASON" help:"For what reason. It is kept in the workflow's history."`
	Recipient int    `name:"recipient" env:"ONCEPOST_RESOLVE_RECIPIENT" placeholder:"N" help:"Which mail, where several of one message are parked; the details in the web UI number them."`
	Step      string `name:"step" env:"ONCEPOST_RESOLVE_STEP" placeholder:"STEP" help:"Which step, where several of one message are parked."`
}

func (c *resolveCmd) Run(a *app) error {
	if err := checkIDs(c.MessageID); err != nil {
		return err
	}
	temporal, namespace, err := c.Dial(a.logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := withTimeout(a, callTimeout)
	defer cancel()
	handle, err := temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: c.MessageID, UpdateName: workflows.UpdateResolve, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{workflows.Resolution{Decision: c.Decision, By: c.By, Why: c.Why, Recipient: c.Recipient, Step: c.Step}},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return fmt.Errorf("no running workflow has the ID %s in namespace %s: it has ended, or was never started", c.MessageID, namespace)
	case err != nil:
		return fmt.Errorf("not resolved: %w", err)
	}
	_, err = fmt.Fprintf(a.stdout, "%s is resolved as %s\n", c.MessageID, c.Decision)
	return err
}
