package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
)

// Guard runs an activity whose effect is guarded by [activities.Once] under the same step, which no other effect of the workflow
// may have. While nobody knows whether the effect has happened the workflow is parked. Then the activity runs again: where a
// person said that it has happened, Once returns an empty ID.
//
// The activity's retry policy and time-outs must not bound its attempts or their time in all: where a worker is killed in the last
// one, the activity ends with no answer, and the workflow fails instead of being parked.
func (p *Parking) Guard(ctx workflow.Context, step string, run func(ctx workflow.Context) error) error {
	if err := p.use(step); err != nil {
		return err
	}
	for {
		err := run(ctx)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.Type() != activities.TypeUnknown {
			return err
		}
		var u activities.Unknown
		if err := app.Details(&u); err != nil {
			return err
		}
		r, err := p.park(ctx, step, 0, 0, u)
		if err != nil {
			return err
		}
		var a *activities.Activities
		decided := a.Authorise
		if r.Decision == DecisionSent {
			decided = a.Settle
		}
		in := activities.SendInput{MessageID: p.msg.MessageID, EventType: p.msg.EventType, Step: step, Generation: u.Next}
		if err := ledgerCall(ctx, decided, in); err != nil {
			return err
		}
	}
}

// use notes that the workflow uses a step. The ledger would say of a second effect under it that it has happened.
func (p *Parking) use(step string) error {
	if p.steps[step] {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("the step %s was used before in this workflow", step), activities.TypeInvalidKey, nil)
	}
	p.steps[step] = true
	return nil
}

// ledgerCall writes a person's decision into the ledger, so that a reset of the workflow does not ask again.
func ledgerCall(ctx workflow.Context, activity any, in activities.SendInput) error {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, besideOptions(in.Step+": as decided")), activity, in).Get(ctx, nil)
}
