package main

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/workflows"
)

type resolveCmd struct {
	target `embed:""`
	order  `embed:""`

	Words     []string `arg:"" name:"message-id ... sent|resend" help:"The messages, which are the workflows' IDs, and the decision. sent: it was sent, nothing more is done. resend: it is sent once more."`
	Recipient int      `name:"recipient" env:"ONCEPOST_RESOLVE_RECIPIENT" placeholder:"N" help:"Which mail, where several of one message are parked; the details in the web UI number them."`
	Step      string   `name:"step" env:"ONCEPOST_RESOLVE_STEP" placeholder:"STEP" help:"Which step, where several of one message are parked."`
}

// Help is what kong prints below the summary.
func (resolveCmd) Help() string {
	return `Look first for the message ID among SES's events (tag message_id), or ask the recipient.

  oncepost resolve payment_failed:sub_9:2026-11 sent --by ann --why "SES delivered it at 09:14"
  oncepost resolve resend --query "OncepostState = 'parked'" --by ann --why "SES's events know none of them"`
}

func (c *resolveCmd) Run(a *app) error {
	last := len(c.Words) - 1
	ids, decision := c.Words[:last], c.Words[last]
	if decision != workflows.DecisionSent && decision != workflows.DecisionResend {
		return config.UsageError{Err: errors.New("the last word must be sent or resend")}
	}
	return c.each(a, ids, "Resolve as "+decision, func(ctx context.Context, t client.Client, id string) error {
		err := update(ctx, t, id, workflows.UpdateResolve, workflows.Resolution{Decision: decision, By: c.By, Why: c.Why, Recipient: c.Recipient, Step: c.Step})
		if err != nil {
			return fmt.Errorf("not resolved: %w", err)
		}
		_, err = fmt.Fprintf(a.stdout, "%s is resolved as %s\n", id, decision)
		return err
	})
}
