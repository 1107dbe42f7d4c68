package integration

import (
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/workflows"
)

var anOrder = workflows.Order{By: "someone", Why: "the customer asks"}

// ask sends an update, and returns why it was refused.
func (w *world) ask(id, name string, arg any) error {
	w.t.Helper()
	h, err := w.c.UpdateWorkflow(w.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{arg},
	})
	if err != nil {
		return err
	}
	return h.Get(w.t.Context(), nil)
}

func (w *world) status(id string) (s workflows.Status) {
	w.t.Helper()
	v, err := w.c.QueryWorkflow(w.t.Context(), id, "", workflows.QueryState)
	if err == nil {
		err = v.Get(&s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// An update during Temporal's start delay wakes the workflow; only the one that says so sends early. (scenario 36)
func TestOrdersDuringAStartDelay(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachWorld(t, func(w *world) {
		due := time.Now().Add(24 * time.Hour)
		for _, id := range []string{"resolved", "now", "cancelled"} {
			m := paymentFailed(id)
			m.DeliverAt = due
			enqueue(w.t, w.s, m)
			w.awaitStarted(id)
		}
		if err := w.ask("resolved", workflows.UpdateResolve, workflows.Resolution{Decision: "sent", By: "a", Why: "b"}); err == nil ||
			!strings.Contains(err.Error(), "nothing is parked") {
			w.t.Errorf("resolve: %v", err)
		}
		if s := w.status("resolved"); s.State != "scheduled" || s.Until == nil || s.Until.Sub(due).Abs() > time.Minute {
			w.t.Errorf("%+v, due at %s", s, due)
		}
		if err := w.ask("cancelled", workflows.UpdateCancelSend, anOrder); err != nil {
			w.t.Error(err)
		}
		if r := w.result("cancelled"); r.Cancelled == nil || *r.Cancelled != anOrder || !r.Sends[0].Withdrawn {
			w.t.Errorf("%+v", r)
		}
		if err := w.ask("now", workflows.UpdateSendNow, anOrder); err != nil {
			w.t.Error(err)
		}
		if r := w.result("now"); r.Sends[0].SESMessageID == "" || w.mails() != 1 {
			w.t.Errorf("%+v, %d mails", r, w.mails())
		}
	})
}

// A wait for the next attempt ends: with another activity, or with none.
func TestOrdersBetweenRealAttempts(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachWorld(t, func(w *world) {
		w.fault("unavailable", 1000)
		enqueue(w.t, w.s, welcome("never"), welcome("now"))
		w.awaitPendingSend("never")
		w.awaitPendingSend("now")
		if err := w.ask("never", workflows.UpdateCancelSend, anOrder); err != nil {
			w.t.Error(err)
		}
		if r := w.result("never"); r.Cancelled == nil || !r.Sends[0].Withdrawn {
			w.t.Errorf("%+v", r)
		}
		w.standin.ClearFaults()
		if err := w.ask("now", workflows.UpdateSendNow, anOrder); err != nil {
			w.t.Log(err) // it was sent in between
		}
		if r := w.result("now"); r.Sends[0].SESMessageID == "" || w.mails() != 1 {
			w.t.Errorf("%+v, %d mails", r, w.mails())
		}
		if n := w.sendsScheduled("never"); n != 1 {
			w.t.Errorf("%d sends of the one that is never sent", n)
		}
	})
}

// sendsScheduled is how many activities a workflow has asked for.
func (w *world) sendsScheduled(id string) (n int) {
	w.t.Helper()
	for _, e := range history(w.t, w.c, id).GetEvents() {
		if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			n++
		}
	}
	return n
}
