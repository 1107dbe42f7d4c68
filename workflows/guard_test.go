package workflows

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// charge is a workflow of a user's own, with one activity that uses activities.Once.
func charge(ctx workflow.Context, msg schemas.Envelope) (id string, err error) {
	p, err := NewParking(ctx, msg)
	if err != nil {
		return "", err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	err = p.Guard(ctx, "charge", func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(ctx, "Charge").Get(ctx, &id)
	})
	return id, err
}

// chargeTwice uses one step for two effects.
func chargeTwice(ctx workflow.Context, msg schemas.Envelope) error {
	p, err := NewParking(ctx, msg)
	if err != nil {
		return err
	}
	nothing := func(workflow.Context) error { return nil }
	if err := p.Guard(ctx, "charge", nothing); err != nil {
		return err
	}
	return p.Guard(ctx, "charge", nothing)
}

func TestGuardParksAndGoesOn(t *testing.T) {
	for _, decision := range []string{DecisionSent, DecisionResend} {
		t.Run(decision, func(t *testing.T) {
			s := &sends{}
			env := s.environment()
			env.RegisterWorkflow(charge)
			runs := 0
			env.RegisterActivityWithOptions(func(context.Context) (string, error) {
				if runs++; runs == 1 {
					return "", temporal.NewApplicationErrorWithOptions("nobody knows", activities.TypeUnknown,
						temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{activities.Unknown{Class: "expired", Next: 1}}})
				}
				return "pay-1", nil
			}, activity.RegisterOptions{Name: "Charge"})
			u := &update{after: time.Hour, r: resolve(decision)}
			env.RegisterDelayedCallback(func() { env.UpdateWorkflow(UpdateResolve, "u", u, u.r) }, u.after)
			env.ExecuteWorkflow(charge, envelope("charge"))
			var id string
			if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&id)); err != nil || id != "pay-1" || runs != 2 || u.fate != "accepted" {
				t.Fatalf("%q after %d runs, update %s: %v", id, runs, u.fate, err)
			}
			want := activities.SendInput{MessageID: "natural:key", EventType: "charge", Step: "charge", Generation: 1}
			wrote := map[string][]activities.SendInput{DecisionSent: s.settled, DecisionResend: s.authorised}
			if len(s.settled)+len(s.authorised) != 1 || wrote[decision][0] != want {
				t.Errorf("settled %+v, authorised %+v", s.settled, s.authorised)
			}
			if len(s.reports) != 1 || s.reports[0].Step != "charge" || s.reports[0].What != "the worker ended in the middle of it" {
				t.Errorf("reports %+v", s.reports)
			}
		})
	}
}

func TestGuardPassesOtherErrorsOn(t *testing.T) {
	s := &sends{}
	env := s.environment()
	env.RegisterWorkflow(charge)
	env.RegisterActivityWithOptions(func(context.Context) (string, error) {
		return "", temporal.NewNonRetryableApplicationError("no funds", "Declined", nil)
	}, activity.RegisterOptions{Name: "Charge"})
	env.ExecuteWorkflow(charge, envelope("charge"))
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "no funds") || len(s.reports) != 0 {
		t.Errorf("%v, reports %v", err, s.reports)
	}
}

func TestAGuardedStepIsUsedOnce(t *testing.T) {
	s := &sends{}
	env := s.environment()
	env.RegisterWorkflow(chargeTwice)
	env.ExecuteWorkflow(chargeTwice, envelope("charge"))
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("%v", err)
	}
}

// A parked mail is reported; where that fails the workflow waits all the same.
func TestParkedMailsAreReported(t *testing.T) {
	for _, reportErr := range []error{nil, errors.New("the alert's SES is away")} {
		s := &sends{unknown: unknownTimes(1), reportErr: reportErr}
		u := &update{after: 24 * time.Hour, r: resolve(DecisionSent)}
		if _, _, err := parkedRun(t, s, PaymentFailed, oneAdmin, u); err != nil || u.fate != "accepted" {
			t.Fatalf("%v; update %s", err, u.fate)
		}
		want := activities.Parked{
			MessageID: "natural:key", EventType: "payment_failed", Step: "mail", Recipient: 1, Class: "no_answer", What: "SES did not answer in time",
		}
		if len(s.reports) == 0 || s.reports[0] != want || reportErr == nil && len(s.reports) != 1 {
			t.Errorf("reports %+v", s.reports)
		}
	}
}
