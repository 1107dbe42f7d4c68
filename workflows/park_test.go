package workflows

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

const oneAdmin = `{"remind_after":"0s","admins":[{"email":"a@example.com"}]}`

// unknownTimes answers unknown to each recipient's first n sends.
func unknownTimes(n int) func(activities.SendInput, int) *activities.Unknown {
	return func(in activities.SendInput, attempt int) *activities.Unknown {
		if attempt > n {
			return nil
		}
		return &activities.Unknown{Class: "no_answer", Next: in.Generation + 1}
	}
}

// update sends the update after a delay, and notes its fate.
type update struct {
	after time.Duration
	r     Resolution
	fate  string
}

func (u *update) Accept()          { u.fate = "accepted" }
func (u *update) Reject(err error) { u.fate = err.Error() }
func (u *update) Complete(_ any, err error) {
	if err != nil {
		u.fate = err.Error()
	}
}

// parkedRun runs a workflow and sends it updates.
func parkedRun(t *testing.T, s *sends, w any, payload string, updates ...*update) (Result, *testsuite.TestWorkflowEnvironment, error) {
	t.Helper()
	env := s.environment()
	env.RegisterWorkflow(w)
	for i, u := range updates {
		env.RegisterDelayedCallback(func() { env.UpdateWorkflow(UpdateResolve, fmt.Sprint(i), u, u.r) }, u.after)
	}
	env.ExecuteWorkflow(w, raw(payload), envelope("payment_failed"))
	var r Result
	err := env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&r)
	}
	return r, env, err
}

func resolve(decision string) Resolution {
	return Resolution{Decision: decision, By: "someone", Why: "the recipient says so"}
}

func TestHoldAsksAndBelieves(t *testing.T) {
	s := &sends{unknown: unknownTimes(1)}
	u := &update{after: 48 * time.Hour, r: resolve(DecisionSent)}
	r, _, err := parkedRun(t, s, PaymentFailed, oneAdmin, u)
	if err != nil || u.fate != "accepted" {
		t.Fatalf("%v; update %s", err, u.fate)
	}
	if len(s.inputs) != 1 || len(s.settled) != 1 || s.settled[0].To.Email != "a@example.com" {
		t.Errorf("sent %+v, settled %+v", s.inputs, s.settled)
	}
	if got := r.Sends[0]; got.Resolved == nil || *got.Resolved != u.r || got.SESMessageID != "" || got.Error != "" {
		t.Errorf("result %+v", got)
	}
}

func TestHoldResendsOncePerDecision(t *testing.T) {
	s := &sends{unknown: unknownTimes(2)}
	first := &update{after: time.Hour, r: resolve(DecisionResend)}
	second := &update{after: 2 * time.Hour, r: resolve(DecisionResend)}
	r, _, err := parkedRun(t, s, PaymentFailed, oneAdmin, first, second)
	if err != nil || first.fate != "accepted" || second.fate != "accepted" {
		t.Fatalf("%v; updates %s, %s", err, first.fate, second.fate)
	}
	var generations []int
	for _, in := range s.inputs {
		generations = append(generations, in.Generation)
	}
	if fmt.Sprint(generations) != "[0 1 2]" || r.Sends[0].SESMessageID == "" || len(s.settled) != 0 {
		t.Errorf("generations %v, result %+v, settled %v", generations, r.Sends[0], s.settled)
	}
}

func TestResendRepeatsOnceAndThenAsks(t *testing.T) {
	s := &sends{unknown: unknownTimes(2)}
	u := &update{after: time.Hour, r: resolve(DecisionSent)}
	_, _, err := parkedRun(t, s, SendMail, `{"email":"a@example.com"}`, u)
	if err != nil || u.fate != "accepted" {
		t.Fatalf("%v; update %s", err, u.fate)
	}
	if len(s.inputs) != 2 || s.inputs[1].Generation != 1 || !s.times[0].Equal(s.times[1]) {
		t.Errorf("sent %+v at %v", s.inputs, s.times)
	}
}

// SendMailOrHold asks at once.
func TestSendMailOrHoldRepeatsNothing(t *testing.T) {
	s := &sends{unknown: unknownTimes(1)}
	u := &update{after: time.Hour, r: resolve(DecisionSent)}
	if _, _, err := parkedRun(t, s, SendMailOrHold, `{"email":"a@example.com"}`, u); err != nil || u.fate != "accepted" || len(s.inputs) != 1 {
		t.Errorf("%v; update %s; sent %+v", err, u.fate, s.inputs)
	}
}

// The ledger remembers a repetition that an earlier run has used up, as after a reset.
func TestResendHasOneRepetitionPerKeyAndNotPerRun(t *testing.T) {
	s := &sends{unknown: func(_ activities.SendInput, attempt int) *activities.Unknown {
		return &activities.Unknown{Class: "expired", Next: 2}
	}}
	u := &update{after: time.Hour, r: resolve(DecisionSent)}
	if _, _, err := parkedRun(t, s, SendMail, `{"email":"a@example.com"}`, u); err != nil || u.fate != "accepted" {
		t.Fatalf("%v; update %s", err, u.fate)
	}
	if len(s.inputs) != 1 {
		t.Errorf("sent %d times", len(s.inputs))
	}
}

// One parked mail holds up no other; each is resolved by its recipient's number.
func TestSeveralAreParked(t *testing.T) {
	s := &sends{unknown: func(in activities.SendInput, attempt int) *activities.Unknown {
		if in.To.Email == "b@example.com" {
			return nil
		}
		return unknownTimes(1)(in, attempt)
	}}
	vague := &update{after: time.Hour, r: resolve(DecisionSent)}
	wrong := &update{after: time.Hour, r: Resolution{Decision: DecisionSent, By: "x", Why: "y", Recipient: 2}}
	third := &update{after: 2 * time.Hour, r: Resolution{Decision: DecisionSent, By: "x", Why: "y", Recipient: 3}}
	rest := &update{after: 3 * time.Hour, r: resolve(DecisionResend)}
	r, _, err := parkedRun(t, s, PaymentFailed, `{"remind_after":"0s","admins":[{"email":"a@example.com"},{"email":"b@example.com"},{"email":"c@example.com"}]}`,
		vague, wrong, third, rest)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(vague.fate, "2 are parked") || !strings.Contains(wrong.fate, "recipient 2 is not parked") ||
		third.fate != "accepted" || rest.fate != "accepted" {
		t.Errorf("%q, %q, %q, %q", vague.fate, wrong.fate, third.fate, rest.fate)
	}
	if r.Sends[0].Resolved.Decision != DecisionResend || r.Sends[0].SESMessageID == "" || r.Sends[1].Resolved != nil ||
		r.Sends[2].Resolved.Decision != DecisionSent || len(s.inputs) != 4 {
		t.Errorf("%+v, %d sends", r.Sends, len(s.inputs))
	}
}

func TestResolveIsValidated(t *testing.T) {
	for name, r := range map[string]Resolution{
		"decision must be":   {Decision: "perhaps", By: "x", Why: "y"},
		"by and why are":     {Decision: DecisionSent, By: " ", Why: "y"},
		"are required":       {Decision: DecisionSent, By: "x"},
		"may have 1000":      {Decision: DecisionSent, By: "x", Why: strings.Repeat("y", 1001)},
		"recipient 2 is not": {Decision: DecisionSent, By: "x", Why: "y", Recipient: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sends{unknown: unknownTimes(1)}
			bad, good := &update{after: time.Hour, r: r}, &update{after: 2 * time.Hour, r: resolve(DecisionSent)}
			if _, _, err := parkedRun(t, s, PaymentFailed, oneAdmin, bad, good); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(bad.fate, name) || good.fate != "accepted" {
				t.Errorf("%q, then %q", bad.fate, good.fate)
			}
		})
	}
}

func TestNothingIsParked(t *testing.T) {
	s := &sends{answer: func(_ activities.SendInput, attempt int) error {
		if attempt < 4 {
			return errors.New("throttled")
		}
		return nil
	}}
	early := &update{after: time.Second, r: resolve(DecisionSent)}
	if _, _, err := parkedRun(t, s, PaymentFailed, oneAdmin, early); err != nil || !strings.Contains(early.fate, "nothing is parked") {
		t.Errorf("%v; update %q", err, early.fate)
	}
}

func TestAParkedWorkflowCanBeCancelled(t *testing.T) {
	s := &sends{unknown: unknownTimes(1)}
	env := s.environment()
	env.RegisterWorkflow(PaymentFailed)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	env.ExecuteWorkflow(PaymentFailed, raw(oneAdmin), envelope("payment_failed"))
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("%v", err)
	}
	if len(s.inputs) != 1 {
		t.Errorf("sent %d times", len(s.inputs))
	}
}

func TestDetailsSayWhatToDo(t *testing.T) {
	text := details([]*parked{{step: "mail", i: 2, n: 3, unknown: activities.Unknown{Class: "expired"}}}, "it's:1")
	for _, part := range []string{"mail 2 of 3", "the worker ended", "twice", `oncepost resolve 'it'\''s:1' sent|resend --by`, "`resolve`"} {
		if !strings.Contains(text, part) {
			t.Errorf("the details lack %q:\n%s", part, text)
		}
	}
	if schemas.StateParked != "parked" {
		t.Error("the search attribute's value has changed")
	}
}

// mailTwice is what a careless workflow does: the ledger would say of the second mail that it was sent.
func mailTwice(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	m, err := newMailing(ctx, payload, msg, Hold)
	if err != nil {
		return Result{}, err
	}
	to := []activities.Address{{Email: "a@example.com"}}
	if r, err := m.sendAll(ctx, "mail", to); err != nil {
		return r, err
	}
	return m.sendAll(ctx, "mail", to)
}

func TestAStepIsUsedOnce(t *testing.T) {
	s := &sends{}
	_, _, err := parkedRun(t, s, mailTwice, oneAdmin)
	if err == nil || !strings.Contains(err.Error(), "used before") || len(s.inputs) != 1 {
		t.Errorf("%v, %d sends", err, len(s.inputs))
	}
}
