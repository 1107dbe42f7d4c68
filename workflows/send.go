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
}

// Send is what became of one recipient's mail. It holds no address.
type Send struct {
	Recipient    int    `json:"recipient"` // 1 for the first
	SESMessageID string `json:"ses_message_id,omitempty"`
	Error        string `json:"error,omitempty"`
}

// SendMail is the workflow of every type that is one mail to the payload's "email".
func SendMail(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	p, err := read(payload)
	if err != nil {
		return Result{}, err
	}
	email, err := field[string](p, "email")
	if err != nil {
		return Result{}, err
	}
	if err := awaitDue(ctx, msg); err != nil {
		return Result{}, err
	}
	return sendAll(ctx, payload, msg, []activities.Address{{Email: email}})
}

// PaymentFailed mails each of the payload's admins. An address that stands twice gets one mail.
func PaymentFailed(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	admins, err := admins(payload)
	if err != nil {
		return Result{}, err
	}
	if err := awaitDue(ctx, msg); err != nil {
		return Result{}, err
	}
	return sendAll(ctx, payload, msg, distinct(admins))
}

func admins(payload converter.RawValue) ([]activities.Address, error) {
	p, err := read(payload)
	if err != nil {
		return nil, err
	}
	list, err := field[[]object](p, "admins")
	if err != nil {
		return nil, err
	}
	all := make([]activities.Address, len(list))
	for i, o := range list {
		if all[i], err = address(o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func distinct(all []activities.Address) []activities.Address {
	seen := map[string]bool{}
	var out []activities.Address
	for _, a := range all {
		if !seen[a.Email] {
			seen[a.Email] = true
			out = append(out, a)
		}
	}
	return out
}

// awaitDue waits for what remains until the message is due. Temporal's start delay has passed as a rule; but any signal
// or update ends it early, and a mail must not go early.
func awaitDue(ctx workflow.Context, msg schemas.Envelope) error {
	if msg.DelayMicros <= 0 {
		return nil
	}
	due := workflow.GetInfo(ctx).WorkflowStartTime.Add(time.Duration(msg.DelayMicros) * time.Microsecond)
	if remaining := due.Sub(workflow.Now(ctx)); remaining > 0 {
		if err := workflow.Sleep(ctx, remaining); err != nil {
			return err
		}
	}
	return setState(ctx, schemas.StateSending)
}

func setState(ctx workflow.Context, state string) error {
	return workflow.UpsertTypedSearchAttributes(ctx,
		temporal.NewSearchAttributeKeyKeyword(schemas.AttributeState).ValueSet(state),
		temporal.NewSearchAttributeKeyTime(schemas.AttributeSince).ValueSet(workflow.Now(ctx)))
}

// sendAll sends one mail to each recipient, all at once, and waits for every one: a failing one neither repeats nor blocks
// the others. It fails where any has failed for good. A large payload is not repeated in each send.
func sendAll(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope, to []activities.Address) (Result, error) {
	if len(to) == 0 { // nothing would be sent, nothing checked, and the message be lost as a success
		return Result{}, invalid("the payload names no recipient")
	}
	if len(payload.Payload().GetData()) > activities.MaxInline {
		payload = activities.FromHistory()
	}
	var a *activities.Activities
	sends := make([]workflow.Future, len(to))
	for i, address := range to {
		ctx := workflow.WithActivityOptions(ctx, sendOptions(i+1, len(to)))
		in := activities.SendInput{MessageID: msg.MessageID, EventType: msg.EventType, To: address}
		sends[i] = workflow.ExecuteActivity(ctx, a.Send, in, payload)
	}
	var result Result
	var errs []error
	for i, f := range sends {
		var r activities.SendResult
		send := Send{Recipient: i + 1}
		if err := f.Get(ctx, &r); err != nil {
			send.Error = cause(err)
			errs = append(errs, err)
		}
		send.SESMessageID = r.SESMessageID
		result.Sends = append(result.Sends, send)
	}
	return result, failure(result, errs)
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

// sendOptions let a send be retried for as long as an outage lasts.
func sendOptions(i, n int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           schemas.SendTaskQueue,
		StartToCloseTimeout: 30 * time.Second,
		Summary:             fmt.Sprintf("mail %d of %d", i, n),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 2 * time.Minute,
		},
	}
}
