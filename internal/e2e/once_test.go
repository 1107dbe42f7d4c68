package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

const paymentFailed = `{"subscription_id":"sub_9","amount":"12.50","currency":"EUR","reregister_url":"https://example.com/card",
"remind_after":"0s","admins":[{"email":"first.admin@example.com","name":"A"}]}`

// TestAWorkerKilledAfterTheAnswer: scenario 20. SES has the mails, and the worker dies before it writes so. The payment's
// workflow is parked until a person says what is true; the welcome goes once more.
func TestAWorkerKilledAfterTheAnswer(t *testing.T) {
	w := one(t)
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
	resolve := []string{"resolve", "hold", "sent", "--by", "someone", "--why", "it is in the inbox"}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		code, out := run(t, w.env, "oncepost", resolve...)
		if code == 0 && strings.Contains(out, "hold is resolved as sent") {
			break
		}
		if !strings.Contains(out, "nothing is parked") || time.Now().After(deadline) {
			t.Fatalf("resolve: exit code %d: %s", code, out)
		}
		time.Sleep(time.Second)
	}
	for _, id := range []string{"hold", "again"} {
		if err := w.temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	count := map[string]int{}
	for _, m := range w.mails(3) {
		count[m.MessageID]++
	}
	if count["hold"] != 1 || count["again"] != 2 {
		t.Errorf("mails %v, want the payment's once and the welcome twice", count)
	}
	fails(t, w.env, 1, []string{"has ended, or was never started"}, "oncepost", resolve...)
}

// TestARollingRestartOfWorkers: scenario 42. Nothing is parked, nothing sent twice.
func TestARollingRestartOfWorkers(t *testing.T) {
	w := one(t)
	w.must("migrate")
	w.start("oncepost", "relay").await("relay running")
	addFault(t, w.ses, `{"answer_delay": "200ms"}`)
	worker := w.start("oncepost", "worker")
	worker.await("worker running")
	var ids []string
	for range 4 {
		ids = append(ids, w.enqueue(60)...)
		next := w.start("oncepost", "worker")
		next.await("worker running")
		worker.stop(syscall.SIGTERM)
		worker = next
	}
	w.mails(len(ids))
	for _, id := range ids {
		if err := w.temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	w.onceEach(ids)
	worker.stop(syscall.SIGTERM)
}
