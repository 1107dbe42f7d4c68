package workflows

import (
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/schemas"
)

const oneMail = `{"email":"a@example.com"}`

// due runs SendMail with a delay, as it is when Temporal's start delay ended early after woken, and returns how long after
// the start the mail went out.
func due(t *testing.T, delay, woken time.Duration) time.Duration {
	t.Helper()
	s := &sends{}
	msg := envelope("welcome")
	msg.DelayMicros = delay.Microseconds()
	var started time.Time
	if _, err := run(t, s, func(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
		started = workflow.GetInfo(ctx).WorkflowStartTime
		if err := workflow.Sleep(ctx, woken); err != nil { // the test environment knows no start delay
			return Result{}, err
		}
		return SendMail(ctx, payload, msg)
	}, oneMail, msg); err != nil {
		t.Fatal(err)
	}
	if len(s.times) != 1 {
		t.Fatalf("%d sends", len(s.times))
	}
	return s.times[0].Sub(started)
}

// Any signal or update ends Temporal's start delay early; the workflow then waits for what remains, and a mail that is due
// or late goes at once. (scenario 36)
func TestAMailIsNeverEarly(t *testing.T) {
	for _, c := range []struct {
		name               string
		delay, woken, want time.Duration
	}{
		{"no delay", 0, 0, 0},
		{"a delay that is past", -time.Hour, 0, 0},
		{"woken at once", time.Hour, 0, time.Hour},
		{"woken half-way", time.Hour, 20 * time.Minute, time.Hour},
		{"woken on time", time.Hour, time.Hour, time.Hour},
		{"started late", time.Hour, 3 * time.Hour, 3 * time.Hour},
		{"weeks", 40 * 24 * time.Hour, time.Minute, 40 * 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := due(t, c.delay, c.woken); got < c.want || got > c.want+time.Second {
				t.Errorf("the mail went after %s, want %s", got, c.want)
			}
		})
	}
}

// A plain message changes no search attribute; a delayed one becomes "sending" once, when it is due.
func TestStateChangesOnlyAfterADelay(t *testing.T) {
	started := time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)
	for delay, times := range map[time.Duration]int{0: 0, time.Hour: 1} {
		s := &sends{}
		env := s.environment()
		env.SetStartTime(started)
		// With an expectation set, any other change fails the workflow.
		change := env.OnUpsertTypedSearchAttributes(temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(schemas.AttributeState).ValueSet(schemas.StateSending),
			temporal.NewSearchAttributeKeyTime(schemas.AttributeSince).ValueSet(started.Add(delay)))).Return(nil)
		if times == 0 {
			change.Never()
		} else {
			change.Times(times)
		}
		msg := envelope("welcome")
		msg.DelayMicros = delay.Microseconds()
		env.ExecuteWorkflow(SendMail, raw(oneMail), msg)
		if err := env.GetWorkflowError(); err != nil {
			t.Errorf("delay %s: %v", delay, err)
		}
		if times > 0 {
			env.AssertExpectations(t)
		}
	}
}
