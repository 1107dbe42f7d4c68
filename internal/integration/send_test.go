package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/workflows"
)

// world is everything but the processes: a database, a namespace, the SDK against the stand-in over HTTP, a relay, a worker.
type world struct {
	t         *testing.T
	s         *testdb.Schema
	addr      string // Temporal's
	namespace string
	c         client.Client
	standin   *sesstandin.Server
	losing    atomic.Bool // a proxy drops every reply of the stand-in
	mailer    *ses.Mailer
}

// eachWorld runs test in a world on each database, with a namespace of its own in one Temporal.
func eachWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	eachRetaining(t, 24*time.Hour, test)
}

func eachRetaining(t *testing.T, retention time.Duration, test func(w *world)) {
	t.Helper()
	eachUnmanned(t, retention, func(w *world) {
		runWorker(w.t, w.s.DSN, w.c, w.mailer)
		test(w)
	})
}

// eachUnmanned is eachRetaining without a worker.
func eachUnmanned(t *testing.T, retention time.Duration, test func(w *world)) {
	t.Helper()
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "sends", retention)
		w := &world{t: t, s: s, addr: temporal.FrontendAddr(), namespace: ns, c: c}
		w.openSES()
		runRelay(t, s.DSN, c, ns, starter.Config{})
		test(w)
	})
}

// openSES opens the stand-in, behind a proxy that can lose its answers.
func (w *world) openSES() {
	w.t.Helper()
	var err error
	if w.standin, err = sesstandin.New(sesstandin.Config{}); err != nil {
		w.t.Fatal(err)
	}
	testdb.CloseAtEnd(w.t, w.standin)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.losing.Load() {
			w.standin.Handler().ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		w.standin.Handler().ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	if w.mailer, err = ses.New(w.t.Context(), ses.Config{From: "mail@example.com", Endpoint: server.URL, Timeout: 2 * time.Second}); err != nil {
		w.t.Fatal(err)
	}
}

// fault makes the stand-in fail so many sends, in the way of a preset.
func (w *world) fault(preset string, times int) {
	w.t.Helper()
	f, err := sesstandin.Preset(preset)
	if err != nil {
		w.t.Fatal(err)
	}
	f.Times = times
	if _, err := w.standin.Inject(f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mails() int { return len(w.standin.Mails()) }

func paymentFailed(id string) outbox.Message { return paymentFailedRemind(id, "0s") }

func paymentFailedRemind(id, after string) outbox.Message {
	return outbox.Message{ID: id, EventType: "payment_failed", Payload: map[string]any{
		"remind_after":    after,
		"subscription_id": "sub_9", "amount": "12.50", "currency": "EUR", "reregister_url": "https://example.com/card",
		"admins": []map[string]string{{"email": "a@example.com", "name": "A"}},
	}}
}

// awaitParked waits until the workflow is listed among the parked ones, and returns the details that a person sees.
func (w *world) awaitParked(id string) string {
	w.t.Helper()
	query := fmt.Sprintf("WorkflowId = '%s' AND OncepostState = 'parked' AND ExecutionStatus = 'Running'", id)
	testdb.Eventually(w.t, id+" is parked", func() bool {
		r, err := w.c.CountWorkflow(w.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		return err == nil && r.GetCount() == 1
	})
	v, err := w.c.QueryWorkflow(w.t.Context(), id, "", "__temporal_workflow_metadata")
	if err != nil {
		w.t.Fatal(err)
	}
	var metadata sdkpb.WorkflowMetadata
	if err := v.Get(&metadata); err != nil {
		w.t.Fatal(err)
	}
	return metadata.GetCurrentDetails()
}

// resolve decides about what is parked. A run that was just reset shows the state of the run before, and may not be parked again yet.
func (w *world) resolve(id, decision string) {
	w.t.Helper()
	testdb.Eventually(w.t, id+" takes a decision", func() bool {
		h, err := w.c.UpdateWorkflow(w.t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: workflows.UpdateResolve, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{workflows.Resolution{Decision: decision, By: "someone", Why: "seen"}},
		})
		if err == nil {
			err = h.Get(w.t.Context(), nil)
		}
		if err != nil && !strings.Contains(err.Error(), "nothing is parked") {
			w.t.Fatal(err)
		}
		return err == nil
	})
}

// awaitStarted waits until the workflow is there.
func (w *world) awaitStarted(id string) {
	w.t.Helper()
	testdb.Eventually(w.t, id+" is started", func() bool {
		_, err := w.c.DescribeWorkflowExecution(w.t.Context(), id, "")
		return err == nil
	})
}

// result waits for the workflow's end.
func (w *world) result(id string) (r workflows.Result) {
	w.t.Helper()
	w.awaitStarted(id)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := w.c.GetWorkflow(ctx, id, "").Get(ctx, &r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// reset starts a closed or running workflow again from its first task, as the web UI's button does.
func (w *world) reset(id string) { w.resetTo(id, "", 4) }

// resetTo takes a run back to a workflow task of its.
func (w *world) resetTo(id, run string, task int64) {
	w.t.Helper()
	_, err := w.c.ResetWorkflowExecution(w.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: w.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "test", WorkflowTaskFinishEventId: task, RequestId: fmt.Sprint(time.Now().UnixNano()),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// tasks are the workflow tasks that the last run has completed.
func (w *world) tasks(id string) (run string, tasks []int64) {
	w.t.Helper()
	d, err := w.c.DescribeWorkflowExecution(w.t.Context(), id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	run = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	for events := w.c.GetWorkflowHistory(w.t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, e.GetEventId())
		}
	}
	return run, tasks
}

// TestTheAnswerIsLost: scenario 18. SES accepts, then the connection drops.
func TestTheAnswerIsLost(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.fault("lost-answer", 1)
		enqueue(w.t, w.s, paymentFailed("hold"))
		details := w.awaitParked("hold")
		for _, part := range []string{"mail 1 of 1", "the connection broke", "oncepost resolve 'hold' sent"} {
			if !strings.Contains(details, part) {
				w.t.Errorf("the details lack %q: %s", part, details)
			}
		}
		if n := w.mails(); n != 1 {
			w.t.Fatalf("%d mails", n)
		}
		w.resolve("hold", workflows.DecisionSent)
		if r := w.result("hold"); r.Sends[0].Resolved == nil || w.mails() != 1 {
			w.t.Errorf("%+v, %d mails", r, w.mails())
		}
		w.fault("lost-answer", 1)
		enqueue(w.t, w.s, welcome("resend"))
		if r := w.result("resend"); r.Sends[0].SESMessageID == "" || w.mails() != 3 {
			w.t.Errorf("%+v, %d mails, want the welcome twice", r, w.mails())
		}
	})
}

// TestResetSendsNothing: scenario 19. The runs after a reset read the ledger.
func TestResetSendsNothing(t *testing.T) {
	eachWorld(t, func(w *world) {
		enqueue(w.t, w.s, paymentFailed("plain"))
		first := w.result("plain")
		w.reset("plain")
		if again := w.result("plain"); again.Sends[0].SESMessageID != first.Sends[0].SESMessageID || w.mails() != 1 {
			w.t.Errorf("%+v, then %+v; %d mails", first, again, w.mails())
		}
		w.fault("lost-answer", 1)
		enqueue(w.t, w.s, paymentFailed("told"))
		w.awaitParked("told")
		w.resolve("told", workflows.DecisionSent)
		w.result("told")
		w.reset("told")
		if r := w.result("told"); w.mails() != 2 {
			w.t.Errorf("%+v; %d mails", r, w.mails())
		}
	})
}

// An activity that is reset in the web UI, while it waits for its next attempt and in the middle of one, sends nothing twice.
func TestResetOfAnActivitySendsNothing(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.fault("throttle", 1)
		enqueue(w.t, w.s, paymentFailed("waits"))
		w.resetActivity("waits", func(a *workflowpb.PendingActivityInfo) bool { return a.GetLastFailure() != nil })
		if r := w.result("waits"); r.Sends[0].SESMessageID == "" || w.mails() != 1 {
			w.t.Errorf("%+v; %d mails", r, w.mails())
		}
		if _, err := w.standin.Inject(sesstandin.Fault{AnswerDelay: sesstandin.Duration(1500 * time.Millisecond), Times: 1}); err != nil {
			w.t.Fatal(err)
		}
		enqueue(w.t, w.s, paymentFailed("sends"))
		testdb.Eventually(w.t, "SES has the mail", func() bool { return w.mails() == 2 })
		w.resetActivity("sends", func(a *workflowpb.PendingActivityInfo) bool {
			return a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
		})
		if r := w.result("sends"); r.Sends[0].SESMessageID == "" || r.Sends[0].Resolved != nil || w.mails() != 2 {
			w.t.Errorf("%+v; %d mails", r, w.mails())
		}
	})
}

// resetActivity resets the send of a workflow, with its heartbeat details, once it is in a state.
func (w *world) resetActivity(id string, when func(a *workflowpb.PendingActivityInfo) bool) {
	w.t.Helper()
	testdb.Eventually(w.t, "the send of "+id+" is in the state", func() bool {
		d, err := w.c.DescribeWorkflowExecution(w.t.Context(), id, "")
		return err == nil && len(d.GetPendingActivities()) == 1 && when(d.GetPendingActivities()[0])
	})
	_, err := w.c.WorkflowService().ResetActivity(w.t.Context(), &workflowservice.ResetActivityRequest{
		Namespace: w.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id},
		Activity: &workflowservice.ResetActivityRequest_Type{Type: "Send"}, ResetHeartbeat: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestOneDecisionIsOneMail: scenario 45. A reset replays the update, or asks as if nothing had been decided.
func TestOneDecisionIsOneMail(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.fault("lost-answer", 2)
		enqueue(w.t, w.s, paymentFailed("again"))
		w.awaitParked("again")
		w.resolve("again", workflows.DecisionResend)
		standing := func() string {
			return testdb.Value[string](w.t, w.s.DB, "SELECT CONCAT(state, ' ', generation) FROM sends")
		}
		testdb.Eventually(w.t, "the second answer is lost too", func() bool { return w.mails() == 2 && standing() == "unknown 1" })
		run, tasks := w.tasks("again")
		for _, task := range tasks {
			w.resetTo("again", run, task)
			testdb.Eventually(w.t, "the run asks again", func() bool {
				_, done := w.tasks("again")
				return len(done) > 0 && done[len(done)-1] > task+2 // it has gone beyond
			})
			w.awaitParked("again")
		}
		w.resolve("again", workflows.DecisionSent)
		if r := w.result("again"); r.Sends[0].Resolved == nil || standing() != "done 1" || w.mails() != 2 {
			w.t.Errorf("%+v, ledger %s, %d mails after one decision and resets to %d tasks, want 2", r, standing(), w.mails(), len(tasks))
		}
	})
}

// TestTheLedgerOutlivesTemporal: scenario 14. Retention has deleted the run, and the same message comes again.
func TestTheLedgerOutlivesTemporal(t *testing.T) {
	eachRetaining(t, 2*time.Second, func(w *world) {
		gone := func() {
			testdb.Eventually(w.t, "the run is gone", func() bool {
				_, err := w.c.DescribeWorkflowExecution(w.t.Context(), "twice", "")
				return err != nil
			})
		}
		enqueue(w.t, w.s, paymentFailed("twice"))
		first := w.result("twice")
		gone()
		enqueue(w.t, w.s, paymentFailed("twice"))
		if again := w.result("twice"); again.Sends[0].SESMessageID != first.Sends[0].SESMessageID || w.mails() != 1 {
			w.t.Errorf("%+v, then %+v; %d mails", first, again, w.mails())
		}
		gone()
		respelled := paymentFailed("twice") // another payload for the same mailbox
		respelled.Payload.(map[string]any)["admins"] = []map[string]string{{"email": "A@Example.COM", "name": "A"}}
		enqueue(w.t, w.s, respelled)
		w.awaitStarted("twice")
		gone() // so it has ended; how, may be deleted before it can be asked for
		if n := w.mails(); n != 1 {
			w.t.Errorf("another spelling: %d mails", n)
		}
	})
}

// TestTheCardIsRegisteredFirst: scenario 47. The answer starts before the message that it answers, which then has its mail,
// since it was sent before the signal could come, and no reminder; and an answer to nothing completes as unmatched.
func TestTheCardIsRegisteredFirst(t *testing.T) {
	eachWorld(t, func(w *world) {
		enqueue(w.t, w.s, outbox.Message{ID: "card", EventType: "card_registered", Payload: map[string]string{
			"subscription_id": "sub_9", "payment_failed_id": "late",
		}})
		w.awaitStarted("card")
		time.Sleep(2 * time.Second) // it has looked in vain
		enqueue(w.t, w.s, paymentFailedRemind("late", "72h"))
		var m workflows.Matching
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		if err := w.c.GetWorkflow(ctx, "card", "").Get(ctx, &m); err != nil || !m.Matched {
			w.t.Fatalf("%+v, %v", m, err)
		}
		if r := w.result("late"); !r.Answered || len(r.Reminders) != 0 || w.mails() > 1 {
			w.t.Errorf("%+v, %d mails", r, w.mails())
		}
	})
}
