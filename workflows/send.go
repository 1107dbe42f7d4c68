package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// Result is what a mail workflow completed with.
type Result struct {
	// Sends are in the order of the recipients.
	Sends []Send `json:"sends"`
	// Reminders are the second mails, to those whom the first has reached.
	Reminders []Send `json:"reminders,omitempty"`
	// Answered says that what the mails ask for was done before the last of them.
	Answered bool `json:"answered,omitempty"`
	// Cancelled is the order of a person after which nothing more was sent.
	Cancelled *Order `json:"cancelled,omitempty"`
}

// Send is what became of one recipient's mail. It holds no address.
type Send struct {
	Recipient    int    `json:"recipient"` // 1 for the first
	SESMessageID string `json:"ses_message_id,omitempty"`
	// Resolved is how a person decided where nobody knew whether the mail was sent.
	Resolved *Resolution `json:"resolved,omitempty"`
	Error    string      `json:"error,omitempty"`
	// Withdrawn says that the mail was not needed any more before a worker began to send it.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Policy says what happens when nobody knows whether a mail was sent.
type Policy = activities.Policy

// The policies: see package activities.
const (
	Resend = activities.Resend
	Hold   = activities.Hold
)

// SendMail is the workflow of every type that is one mail to the payload's "email" and does no harm twice.
func SendMail(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	return sendMail(ctx, payload, msg, Resend)
}

// SendMailOrHold is SendMail for mails that do harm twice.
func SendMailOrHold(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	return sendMail(ctx, payload, msg, Hold)
}

func sendMail(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope, policy Policy) (Result, error) {
	m, err := newMailing(ctx, payload, msg, policy)
	if err != nil {
		return Result{}, err
	}
	p, err := read(payload)
	if err != nil {
		return Result{}, err
	}
	email, err := field[string](p, "email")
	if err != nil {
		return Result{}, err
	}
	if err := m.awaitDue(ctx); err != nil {
		return Result{}, err
	}
	return m.sendAll(ctx, "mail", []activities.Address{{Email: email}})
}

// awaitDue waits for what remains until the message is due. Temporal's start delay has passed as a rule; but any signal
// or update ends it early, and a mail must not go early.
func awaitDue(ctx workflow.Context, msg schemas.Envelope) error {
	due, delayed := dueAt(ctx, msg)
	if !delayed {
		return nil
	}
	if remaining := due.Sub(workflow.Now(ctx)); remaining > 0 {
		if err := workflow.Sleep(ctx, remaining); err != nil {
			return err
		}
	}
	return setState(ctx, schemas.StateSending)
}

func dueAt(ctx workflow.Context, msg schemas.Envelope) (due time.Time, delayed bool) {
	return workflow.GetInfo(ctx).WorkflowStartTime.Add(time.Duration(msg.DelayMicros) * time.Microsecond), msg.DelayMicros > 0
}

func setState(ctx workflow.Context, state string) error {
	return workflow.UpsertTypedSearchAttributes(ctx,
		temporal.NewSearchAttributeKeyKeyword(schemas.AttributeState).ValueSet(state),
		temporal.NewSearchAttributeKeyTime(schemas.AttributeSince).ValueSet(workflow.Now(ctx)))
}

// cause is the innermost message: the outer ones say only that an activity failed.
func cause(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

// failure fails the workflow when a send has failed for good; its details list every recipient's outcome.
func failure(result Result, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	var app *temporal.ApplicationError
	if !errors.As(errs[0], &app) { // cancelled
		return errs[0]
	}
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("%d of %d mails cannot be sent: %s", len(errs), len(result.Sends), app.Message()), app.Type(),
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
}
