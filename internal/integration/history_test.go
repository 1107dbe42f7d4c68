package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/workflows"
)

// historiesEnv names a folder to write new stored histories to. Those that are stored are never written again to make a
// test pass: a change that breaks them needs a version marker.
const historiesEnv = "ONCEPOST_WRITE_HISTORIES"

// doubtful is a mailbox that nobody has an answer of, for the first mails of some messages.
type doubtful struct {
	mailbox
	left map[string]int // by message
}

func (d *doubtful) Send(ctx context.Context, mail activities.Mail) activities.Answer {
	d.mu.Lock()
	d.left[mail.MessageID]--
	doubt := d.left[mail.MessageID] >= 0
	d.mu.Unlock()
	if doubt {
		return activities.Answer{Verdict: activities.VerdictUnknown, Class: "no_answer", Text: "no answer"}
	}
	return d.mailbox.Send(ctx, mail)
}

// TestHistoriesReplay runs each shipped workflow for real, and replays its history against the same code.
func TestHistoriesReplay(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "history", 24*time.Hour)
		runWorker(t, s.DSN, c, &doubtful{left: map[string]int{"payment_failed_settled": 1, "payment_failed_resent": 1, "welcome_repeated": 1}})
		runRelay(t, s.DSN, c, ns, starter.Config{})
		delayed := welcome("welcome_delayed")
		delayed.DeliverAt = time.Now().Add(3 * time.Second)
		invalid := welcome("welcome_invalid")
		invalid.Payload = map[string]string{"email": "a@example.com"}
		enqueue(t, s, welcome("welcome_sent"), delayed, invalid, outbox.Message{
			ID: "payment_failed_sent", EventType: "payment_failed", Payload: map[string]any{
				"remind_after": "0s", "subscription_id": "sub_9", "amount": "12.50", "currency": "EUR", "reregister_url": "https://example.com/card",
				"admins": []map[string]string{{"email": "a@example.com", "name": "A"}, {"email": "b@example.com", "name": "B"}},
			},
		})
		w := &world{t: t, s: s, namespace: ns, c: c}
		enqueue(t, s, welcome("welcome_repeated"), paymentFailed("payment_failed_settled"), paymentFailed("payment_failed_resent"),
			paymentFailedRemind("payment_failed_reminded", "2s"), paymentFailedRemind("payment_failed_answered", "1h"))
		for id, decision := range map[string]string{
			"payment_failed_settled": workflows.DecisionSent, "payment_failed_resent": workflows.DecisionResend,
		} {
			w.awaitParked(id)
			w.resolve(id, decision)
		}
		w.awaitStarted("payment_failed_answered")
		enqueue(t, s, outbox.Message{ID: "card_registered_matched", EventType: "card_registered", Payload: map[string]string{
			"subscription_id": "sub_9", "payment_failed_id": "payment_failed_answered",
		}})
		replayer := worker.NewWorkflowReplayer()
		for _, typ := range workflows.Builtin().Types() {
			replayer.RegisterWorkflowWithOptions(typ.Workflow, workflow.RegisterOptions{Name: typ.Name})
		}
		for _, id := range []string{
			"welcome_sent", "welcome_delayed", "welcome_invalid", "welcome_repeated", "payment_failed_sent", "payment_failed_settled",
			"payment_failed_resent", "payment_failed_reminded", "payment_failed_answered", "card_registered_matched",
		} {
			h := history(t, c, id)
			if err := replayer.ReplayWorkflowHistory(nil, h); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			store(t, id, h)
		}
	})
}

// history waits for the end of a workflow and returns all its events.
func history(t *testing.T, c client.Client, id string) *historypb.History {
	t.Helper()
	testdb.Eventually(t, id+" has started", func() bool {
		_, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		return err == nil
	})
	_ = c.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil) // its failure is part of the history
	h := &historypb.History{}
	events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

func store(t *testing.T, id string, h *historypb.History) {
	t.Helper()
	dir := os.Getenv(historiesEnv)
	if dir == "" {
		return
	}
	b, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, id+".json"), append(b, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
