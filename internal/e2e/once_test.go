package e2e

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/oncepost/oncepost/internal/testdb"
)

const paymentFailed = `{"subscription_id":"sub_9","amount":"12.50","currency":"EUR","reregister_url":"https://example.com/card",
"remind_after":"0s","admins":[{"email":"first.admin@example.com","name":"A"}]}`

// TestAWorkerKilledAfterTheAnswer: scenario 20. SES has the mails, and the worker dies before it writes so. The payment's
// workflow is parked until a person says what is true; the welcome goes once more.
func TestAWorkerKilledAfterTheAnswer(t *testing.T) {
	t.Parallel() // it waits for a claim to expire, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		workerKilledAfterTheAnswer(t, newWorld(t, s))
	})
}

func workerKilledAfterTheAnswer(t *testing.T, w *world) {
	t.Helper()
	w.must("migrate")
	w.start("oncepost", "relay").await("relay running")
	worker := w.start("oncepost", "worker")
	worker.await("worker running")
	addFault(t, w.ses, `{"answer_delay": "10m", "times": 2}`) // accepted, and nobody hears of it
	w.must("enqueue", "payment_failed", "--payload", paymentFailed, "--id", "hold")
	w.must("enqueue", "welcome", "--payload", welcome("first.user@example.com"), "--id", "again")
	w.mails(2)
	worker.kill()
	w.start("oncepost", "worker").await("worker running")

	// The claims last for 40 seconds; until then another attempt might still be at it.
	resolve := w.resolveOnceParked("hold", "it is in the inbox")
	for _, id := range []string{"hold", "again"} {
		if err := w.temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if count := w.mailsByMessage(3); count["hold"] != 1 || count["again"] != 2 {
		t.Errorf("mails %v, want the payment's once and the welcome twice", count)
	}
	fails(t, w.env, 1, []string{"has ended, or was never started"}, "oncepost", resolve...)
}

// TestARollingRestartOfWorkers: scenario 42. Sends are in flight when their worker is told to stop: they end, nothing is parked, and
// nothing sent twice, of a type that would be parked at the first doubt.
func TestARollingRestartOfWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		const payments = 12
		w := newWorld(t, s)
		w.must("migrate")
		w.start("oncepost", "relay").await("relay running")
		worker := w.start("oncepost", "worker")
		worker.await("worker running")
		addFault(t, w.ses, `{"answer_delay": "5s"}`)
		for i := range payments {
			w.must("enqueue", "payment_failed", "--payload", paymentFailed, "--id", fmt.Sprintf("p%d", i))
		}
		w.mails(payments) // all are accepted, and none is answered
		next := w.start("oncepost", "worker")
		next.await("worker running")
		worker.stop(syscall.SIGTERM)
		for i := range payments {
			if err := w.temporal.GetWorkflow(t.Context(), fmt.Sprintf("p%d", i), "").Get(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}
		for id, n := range w.mailsByMessage(payments) {
			if n != 1 {
				t.Errorf("%s: %d mails", id, n)
			}
		}
		if out := worker.out.String() + next.out.String(); strings.Contains(out, "parked: ") {
			t.Error("something is parked")
		}
		next.stop(syscall.SIGTERM)
	})
}

// TestOneDecisionAndSIGKILL: scenario 45. A person lets a parked mail be sent again, its worker is killed in the middle of that, and the
// workflow is reset before and after another worker is there: one decision is one mail, and then a person is asked again.
func TestOneDecisionAndSIGKILL(t *testing.T) {
	t.Parallel() // it waits for a claim to expire, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		w := newWorld(t, s)
		w.must("migrate")
		w.start("oncepost", "relay").await("relay running")
		worker := w.start("oncepost", "worker")
		worker.await("worker running")
		addFault(t, w.ses, `{"drop_after": true, "times": 1}`)
		w.must("enqueue", "payment_failed", "--payload", paymentFailed, "--id", "hold")
		worker.await("parked: a person")
		addFault(t, w.ses, `{"answer_delay": "10m", "times": 1}`)
		w.must("resolve", "hold", "resend", "--by", "someone", "--why", "it is not in the inbox")
		w.mails(2)
		worker.kill()
		w.reset("hold")
		worker = w.start("oncepost", "worker")
		worker.await("parked: a person")
		w.reset("hold")
		w.resolveOnceParked("hold", "it is there twice")
		if err := w.temporal.GetWorkflow(t.Context(), "hold", "").Get(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if n := len(w.mails(2)); n != 2 {
			t.Errorf("%d mails after one decision", n)
		}
	})
}

// resolveOnceParked says that a mail was sent, as soon as a person is asked, and returns the call.
func (w *world) resolveOnceParked(id, why string) (call []string) {
	w.Helper()
	call = []string{"resolve", id, "sent", "--by", "someone", "--why", why}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		code, out := run(w.T, w.env, "oncepost", call...)
		if code == 0 && strings.Contains(out, id+" is resolved as sent") {
			return call
		}
		if !strings.Contains(out, "nothing is parked") || time.Now().After(deadline) {
			w.Fatalf("resolve: exit code %d: %s", code, out)
		}
		time.Sleep(time.Second)
	}
}

// reset takes a workflow back to its first task, as a person may in the web UI.
func (w *world) reset(id string) {
	w.Helper()
	_, err := w.temporal.ResetWorkflowExecution(w.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: w.schema.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
		Reason: "a test", WorkflowTaskFinishEventId: 4, RequestId: rand.Text(),
	})
	if err != nil {
		w.Fatal(err)
	}
}

// mailsByMessage counts the mails of each message, once there are so many.
func (w *world) mailsByMessage(n int) map[string]int {
	w.Helper()
	count := map[string]int{}
	for _, m := range w.mails(n) {
		count[m.MessageID]++
	}
	return count
}
