package workflows

import (
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/oncepost/oncepost/activities"
)

const twoAdmins = `{"admins":[{"email":"a@example.com"},{"email":"b@example.com"}]}`

// failedRun runs PaymentFailed, with what happens to it meanwhile.
func failedRun(t *testing.T, s *sends, payload string, meanwhile func(env *testsuite.TestWorkflowEnvironment)) (Result, error) {
	t.Helper()
	env := s.environment()
	env.RegisterWorkflow(PaymentFailed)
	if meanwhile != nil {
		meanwhile(env)
	}
	env.ExecuteWorkflow(PaymentFailed, raw(payload), envelope("payment_failed"))
	var r Result
	err := env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&r)
	}
	return r, err
}

// steps are the step of each send and how long after the first it was.
func (s *sends) steps() (steps []string, after []time.Duration) {
	for i, in := range s.inputs {
		steps, after = append(steps, in.Step), append(after, s.times[i].Sub(s.times[0]))
	}
	return steps, after
}

func TestAReminderGoesAfterThreeDays(t *testing.T) {
	for payload, wait := range map[string]time.Duration{
		twoAdmins: 72 * time.Hour,
		`{"admins":[{"email":"a@example.com"},{"email":"b@example.com"}],"remind_after":"1h30m"}`: 90 * time.Minute,
	} {
		s := &sends{}
		r, err := failedRun(t, s, payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		steps, after := s.steps()
		if !slices.Equal(steps, []string{"mail", "mail", "reminder", "reminder"}) || after[2] != wait || after[3] != wait {
			t.Errorf("%v after %v", steps, after)
		}
		if len(r.Sends) != 2 || len(r.Reminders) != 2 || r.Answered {
			t.Errorf("%+v", r)
		}
	}
}

func TestNoReminder(t *testing.T) {
	answer := func(after time.Duration) func(env *testsuite.TestWorkflowEnvironment) {
		return func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalCardRegistered, nil) }, after)
		}
	}
	for name, c := range map[string]struct {
		payload   string
		meanwhile func(env *testsuite.TestWorkflowEnvironment)
		mails     int
		answered  bool
	}{
		"the card was registered":            {twoAdmins, answer(71 * time.Hour), 2, true},
		"it was registered before all mails": {twoAdmins, answer(0), 0, true},
		"none is wanted":                     {`{"admins":[{"email":"a@example.com"}],"remind_after":"0s"}`, nil, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sends{}
			r, err := failedRun(t, s, c.payload, c.meanwhile)
			if err != nil || len(s.inputs) != c.mails || r.Answered != c.answered || len(r.Reminders) != 0 {
				t.Errorf("%d mails, %+v, %v", len(s.inputs), r, err)
			}
		})
	}
}

// Who could not be reached is not reminded; the others are, and the workflow fails at the end.
func TestOnlyThoseReachedAreReminded(t *testing.T) {
	s := &sends{answer: func(in activities.SendInput, _ int) error {
		if in.To.Email == "a@example.com" {
			return temporal.NewNonRetryableApplicationError("refused", activities.TypeRejected, nil)
		}
		return nil
	}}
	_, err := failedRun(t, s, twoAdmins, nil)
	steps, _ := s.steps()
	if err == nil || !slices.Equal(steps, []string{"mail", "mail", "reminder"}) || s.inputs[2].To.Email != "b@example.com" {
		t.Errorf("%v, %+v", err, s.inputs)
	}
}

func TestAReminderCanBeCancelled(t *testing.T) {
	s := &sends{}
	_, err := failedRun(t, s, twoAdmins, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, 24*time.Hour)
	})
	if !temporal.IsCanceledError(err) || len(s.inputs) != 2 {
		t.Errorf("%v, %d mails", err, len(s.inputs))
	}
}

func TestABadDurationFailsBeforeAnyMail(t *testing.T) {
	s := &sends{}
	if _, err := failedRun(t, s, `{"admins":[{"email":"a@example.com"}],"remind_after":"soon"}`, nil); err == nil || len(s.inputs) != 0 {
		t.Errorf("%v, %d mails", err, len(s.inputs))
	}
}
