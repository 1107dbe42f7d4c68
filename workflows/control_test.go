package workflows

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

var anOrder = Order{By: "someone", Why: "the customer asks"}

// asked is an update of a name, sent after so long, and its fate.
type asked struct {
	update
	name string
	arg  any
}

// askedRun runs a workflow of which a person asks something; look is called before each update.
func askedRun(t *testing.T, s *sends, w any, payload string, msg schemas.Envelope, look func(Status), all ...*asked) (Result, error) {
	t.Helper()
	env := s.environment()
	env.SetStartTime(time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC))
	env.RegisterWorkflow(w)
	for i, a := range all {
		env.RegisterDelayedCallback(func() {
			look(state(t, env))
			env.UpdateWorkflow(a.name, fmt.Sprint(i), &a.update, a.arg)
		}, a.after)
	}
	env.ExecuteWorkflow(w, raw(payload), msg)
	var r Result
	err := env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&r)
	}
	return r, err
}

func state(t *testing.T, env *testsuite.TestWorkflowEnvironment) (s Status) {
	t.Helper()
	v, err := env.QueryWorkflow(QueryState)
	if err == nil {
		err = v.Get(&s)
	}
	if err != nil {
		t.Error(err)
	}
	return s
}

func delayed(eventType string) schemas.Envelope {
	msg := envelope(eventType)
	msg.DelayMicros = (24 * time.Hour).Microseconds()
	return msg
}

// A person ends the wait for deliver_at; other updates do not. (scenario 36)
func TestSendNowDuringADelay(t *testing.T) {
	s := &sends{}
	early := &asked{update{after: time.Minute}, UpdateResolve, resolve(DecisionSent)}
	nameless := &asked{update{after: 2 * time.Minute}, UpdateSendNow, Order{Why: "x"}}
	now := &asked{update{after: time.Hour}, UpdateSendNow, anOrder}
	r, err := askedRun(t, s, SendMail, oneMail, delayed("welcome"), func(st Status) {
		if st.State != schemas.StateScheduled || st.Until == nil || st.Until.Hour() != 5 || len(st.UnderWay) != 0 || len(s.times) != 0 {
			t.Errorf("%+v, %d sends", st, len(s.times))
		}
	}, early, nameless, now)
	if err != nil || now.fate != "accepted" || r.Sends[0].SESMessageID == "" || r.Cancelled != nil {
		t.Errorf("%v; %s; %+v", err, now.fate, r)
	}
	if at := s.times[0]; at.Hour() != 6 || at.Minute() != 30 {
		t.Errorf("sent at %s, want an hour after 05:30", at)
	}
	if early.fate == "accepted" || nameless.fate == "accepted" {
		t.Errorf("an update with nothing parked: %s; one that nobody asks for: %s", early.fate, nameless.fate)
	}
}

func TestCancelDuringADelay(t *testing.T) {
	s := &sends{}
	no := &asked{update{after: time.Hour}, UpdateCancelSend, anOrder}
	r, err := askedRun(t, s, PaymentFailed, oneAdmin, delayed("payment_failed"), func(Status) {}, no)
	if err != nil || no.fate != "accepted" || len(s.inputs) != 0 {
		t.Fatalf("%v; %s; %d sends", err, no.fate, len(s.inputs))
	}
	if r.Cancelled == nil || *r.Cancelled != anOrder || len(r.Sends) != 1 || !r.Sends[0].Withdrawn || r.Answered {
		t.Errorf("%+v", r)
	}
}

// The reminder goes at once, or never.
func TestOrdersWhileTheReminderWaits(t *testing.T) {
	const payload = `{"remind_after":"72h","admins":[{"email":"a@example.com"}]}`
	for name, mails := range map[string]int{UpdateSendNow: 2, UpdateCancelSend: 1} {
		s := &sends{}
		order := &asked{update{after: time.Hour}, name, anOrder}
		r, err := askedRun(t, s, PaymentFailed, payload, envelope("payment_failed"), func(st Status) {
			if st.State != schemas.StateWaiting || st.Until == nil || st.Until.Day() != 4 {
				t.Errorf("%+v", st)
			}
		}, order)
		if err != nil || order.fate != "accepted" || len(s.inputs) != mails || len(r.Reminders) != mails-1 || (r.Cancelled != nil) != (mails == 1) {
			t.Errorf("%s: %v; %s; %d mails; %+v", name, err, order.fate, len(s.inputs), r)
		}
		if mails == 2 && s.times[1].Sub(s.times[0]) > 2*time.Hour {
			t.Errorf("the reminder went after %s", s.times[1].Sub(s.times[0]))
		}
	}
}

// What has no answer is parked, and is resolved, not cancelled; what has ended is neither.
func TestOrdersToWhatIsParked(t *testing.T) {
	for _, name := range []string{UpdateSendNow, UpdateCancelSend} {
		s := &sends{unknown: unknownTimes(1)}
		order := &asked{update{after: time.Hour}, name, anOrder}
		done := &asked{update{after: 2 * time.Hour}, UpdateResolve, resolve(DecisionSent)}
		_, err := askedRun(t, s, PaymentFailed, oneAdmin, envelope("payment_failed"), func(st Status) {
			if st.State != schemas.StateParked || len(st.Parked) != 1 || st.Parked[0] != (Effect{"mail", 1, "no_answer"}) {
				t.Errorf("%+v", st)
			}
		}, order, done)
		if err != nil || order.fate == "accepted" || done.fate != "accepted" {
			t.Errorf("%s: %v; %s", name, err, order.fate)
		}
	}
}

// A wait between two attempts ends: the mail is tried at once, or not any more.
func TestOrdersBetweenAttempts(t *testing.T) {
	for name, sent := range map[string]bool{UpdateSendNow: true, UpdateCancelSend: false} {
		healthy := false
		s := &sends{answer: func(activities.SendInput, int) error {
			if healthy {
				return nil
			}
			return temporal.NewApplicationErrorWithOptions("throttled", "later", temporal.ApplicationErrorOptions{NextRetryDelay: 24 * time.Hour, Cause: errors.New("x")})
		}}
		order := &asked{update{after: time.Hour}, name, anOrder}
		r, err := askedRun(t, s, SendMail, oneMail, envelope("welcome"), func(st Status) {
			if len(st.UnderWay) != 1 || st.UnderWay[0] != (Effect{Step: "mail", Recipient: 1}) || st.State != schemas.StateSending {
				t.Errorf("%+v", st)
			}
			healthy = true
		}, order)
		if err != nil || order.fate != "accepted" {
			t.Fatalf("%s: %v; %s", name, err, order.fate)
		}
		if got := r.Sends[0]; (got.SESMessageID != "") != sent || got.Withdrawn == sent {
			t.Errorf("%s: %+v", name, r)
		}
		if after := s.times[len(s.times)-1].Sub(s.times[0]); after > 2*time.Hour {
			t.Errorf("%s: the last attempt came after %s", name, after)
		}
	}
}
