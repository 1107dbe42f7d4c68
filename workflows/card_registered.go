package workflows

import (
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// Matching is what a card_registered workflow completed with.
type Matching struct {
	// Matched says that the payment_failed workflow was told. It is false where there is none that runs: it ended before, or
	// never came.
	Matched bool `json:"matched"`
}

const (
	// matchFor is how long the payment_failed message may come later than its answer: messages have no order among them.
	matchFor   = 10 * time.Minute
	matchFirst = time.Second
	matchMost  = 15 * time.Second
)

// CardRegistered tells the payment_failed workflow that it answers. It sends no mail.
func CardRegistered(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Matching, error) {
	var a *activities.Activities
	check := workflow.WithActivityOptions(ctx, besideOptions("check"))
	if err := workflow.ExecuteActivity(check, a.Check, msg.EventType, payload).Get(ctx, nil); err != nil {
		return Matching{}, err
	}
	p, err := read(payload)
	if err != nil {
		return Matching{}, err
	}
	id, err := field[string](p, "payment_failed_id")
	if err != nil {
		return Matching{}, err
	}
	if err := awaitDue(ctx, msg); err != nil {
		return Matching{}, err
	}
	until := workflow.Now(ctx).Add(matchFor)
	for pause := matchFirst; ; pause = min(2*pause, matchMost) {
		err := workflow.SignalExternalWorkflow(ctx, id, "", SignalCardRegistered, nil).Get(ctx, nil)
		if err == nil {
			return Matching{Matched: true}, nil
		}
		if !notFound(err) || !workflow.Now(ctx).Before(until) {
			return Matching{}, unmatched(err)
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return Matching{}, err
		}
	}
}

func notFound(err error) bool {
	var gone *serviceerror.NotFound
	var unknown *temporal.UnknownExternalWorkflowExecutionError
	return errors.As(err, &gone) || errors.As(err, &unknown)
}

// unmatched completes where there is nobody to tell; anything else is an error.
func unmatched(err error) error {
	if notFound(err) {
		return nil
	}
	return err
}
