package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/workflows"
)

func TestAMessageBecomesOneMail(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "mail", 24*time.Hour)
		box := &mailbox{}
		runWorker(t, s.DSN, c, box)
		runRelay(t, s.DSN, c, ns, starter.Config{})
		var ms []outbox.Message
		for i := range 20 {
			ms = append(ms, welcome(fmt.Sprintf("welcome:%02d", i)))
		}
		ms = append(ms, outbox.Message{ID: "failed:1", EventType: "payment_failed", Payload: map[string]any{
			"remind_after": "0s", "subscription_id": "sub_9", "amount": "12.50", "currency": "EUR", "reregister_url": "https://example.com/card",
			"admins": []map[string]string{{"email": "a@example.com", "name": "A"}, {"email": "b@example.com", "name": "B"}, {"email": "a@example.com", "name": "A"}},
		}})
		enqueue(t, s, ms...)
		testdb.Eventually(t, "22 mails", func() bool { return box.count() >= 22 })
		testdb.Eventually(t, "an empty outbox", func() bool { return pending(t, s) == 0 })
		var result map[string]any
		if err := c.GetWorkflow(t.Context(), "failed:1", "").Get(t.Context(), &result); err != nil {
			t.Fatal(err)
		}
		if n := len(result["sends"].([]any)); n != 2 {
			t.Errorf("the result lists %d recipients, want 2", n)
		}
		if n := box.count(); n != 22 {
			t.Errorf("%d mails, want 22", n)
		}
		// The attributes are there, and a plain message has upserted none.
		d, err := c.DescribeWorkflowExecution(t.Context(), "welcome:00", "")
		if err != nil {
			t.Fatal(err)
		}
		got := d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
		if string(got["OncepostState"].GetData()) != `"sending"` || len(got["OncepostSince"].GetData()) == 0 {
			t.Errorf("search attributes: %v", got)
		}
	})
}

// TestSameIDAgain: scenarios 14 (the start) and 34, while the first runs and after it has completed.
func TestSameIDAgain(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "again", 24*time.Hour)
		relay, conds, _ := runRelay(t, s.DSN, c, ns, starter.Config{})
		box := &mailbox{}
		again := func(m outbox.Message) {
			enqueue(t, s, m)
			testdb.Eventually(t, "an empty outbox", func() bool { return pending(t, s) == 0 })
		}
		again(welcome("w:1"))
		again(welcome("w:1")) // still running: no worker yet
		runWorker(t, s.DSN, c, box)
		testdb.Eventually(t, "the mail", func() bool { return box.count() == 1 })
		if err := c.GetWorkflow(t.Context(), "w:1", "").Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		again(welcome("w:1")) // completed
		if st := relay.Stats(); st.Started != 1 || st.Duplicates != 2 || st.Failed != 0 {
			t.Errorf("stats %+v, want 1 started and 2 duplicates", st)
		}
		other := welcome("w:1")
		other.Payload = map[string]string{"company_id": "c_2", "company_name": "Other", "email": "b@example.com"}
		again(other)
		cond := conds.await(t, starter.CondIDReused)
		if cond.MessageID != "w:1" {
			t.Errorf("report %+v", cond)
		}
		again(welcome("W:1")) // another ID
		testdb.Eventually(t, "a second mail", func() bool { return box.count() == 2 })
		if failed(t, s) != 1 {
			t.Errorf("%d rows in outbox_failed, want 1", failed(t, s))
		}
		typed := welcome("w:1")
		typed.EventType = "payment_failed" // the same payload as another type
		again(typed)
		testdb.Eventually(t, "the other type in outbox_failed", func() bool { return failed(t, s) == 2 })
		// A workflow that oncepost did not start.
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "theirs", TaskQueue: "elsewhere"}, "welcome")
		if err != nil {
			t.Fatal(err)
		}
		again(welcome("theirs"))
		testdb.Eventually(t, "three rows in outbox_failed", func() bool { return failed(t, s) == 3 })
	})
}

// TestOneIDInBothLanes: scenario 34. The table takes an ID once for each lane, and Temporal takes it once.
func TestOneIDInBothLanes(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "lanes", 24*time.Hour)
		express := func(m outbox.Message) outbox.Message { m.Priority = 1; return m }
		different := express(welcome("differs"))
		different.Payload = map[string]string{"company_id": "c_2", "company_name": "Other", "email": "b@example.com"}
		typed := express(welcome("typed"))
		typed.EventType = "payment_failed"
		enqueue(t, s, welcome("same"), express(welcome("same")), welcome("differs"), different, welcome("typed"), typed)
		relay, conds, _ := runRelay(t, s.DSN, c, ns, starter.Config{}) // all are there when it begins
		testdb.Eventually(t, "an empty outbox", func() bool { return pending(t, s) == 0 })
		countWorkflows(t, c, 3, "OncepostState = 'sending'")
		if got := testdb.Column[string](t, s.DB, "SELECT CONCAT(message_id, ' ', reason) FROM outbox_failed ORDER BY message_id"); !slices.Equal(got,
			[]string{"differs " + outbox.ReasonIDReused, "typed " + outbox.ReasonIDReused}) {
			t.Errorf("outbox_failed: %v", got)
		}
		if st := relay.Stats(); st.Started != 3 || st.Duplicates != 1 || st.Failed != 2 {
			t.Errorf("stats: %+v", st)
		}
		conds.await(t, starter.CondIDReused)
		// Of two that differ one has started, and the other is kept whole.
		lost := testdb.Value[string](t, s.DB, "SELECT payload FROM outbox_failed WHERE message_id = 'differs'")
		start, err := c.GetWorkflowHistory(t.Context(), "differs", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
		if err != nil {
			t.Fatal(err)
		}
		ran := string(start.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0].GetData())
		if strings.Contains(ran, "c_2") == strings.Contains(lost, "c_2") {
			t.Errorf("%s has started, and %s is in outbox_failed", ran, lost)
		}
	})
}

// TestAStoreThatFoldsCase: with Temporal's store on MySQL, a start of "Key" can be refused because of "key".
func TestAStoreThatFoldsCase(t *testing.T) {
	temporal := newTemporal(t, attributes)
	fold := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(*workflowservice.StartWorkflowExecutionRequest); ok {
			r.WorkflowId = strings.ToLower(r.GetWorkflowId())
		}
		if r, ok := req.(*workflowservice.DescribeWorkflowExecutionRequest); ok {
			r.Execution = &commonpb.WorkflowExecution{WorkflowId: strings.ToLower(r.GetExecution().GetWorkflowId())}
		}
		return next(ctx, method, req, reply, cc, opts...)
	}
	s := starter.NewTemporal(dial(t, temporal.FrontendAddr(), "default", fold), starter.TemporalConfig{})
	start := func(id string) starter.Outcome {
		return s.Start(t.Context(), &outbox.Row{Key: outbox.Key{MessageID: id}, EventType: "welcome", Payload: []byte("{}"), Priority: 3}, 0)
	}
	if o := start("key"); o.Class != starter.Started {
		t.Fatalf("first: %+v", o)
	}
	if o := start("Key"); o.Class != starter.Reused || !strings.Contains(o.Reason, "letter case") {
		t.Errorf("second: %+v, want id_reused", o)
	}
	if o := start("key"); o.Class != starter.Duplicate {
		t.Errorf("the same again: %+v, want a duplicate", o)
	}
}

// TestMissingSearchAttribute: scenario 41 with the server's own answer. One row is enough to tell.
func TestMissingSearchAttribute(t *testing.T) {
	temporal := newTemporal(t, nil)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		c := dial(t, temporal.FrontendAddr(), "default")
		_, conds, _ := runRelay(t, s.DSN, c, "default", starter.Config{})
		enqueue(t, s, welcome("w:1"))
		cond := conds.await(t, starter.CondMisconfigured)
		if !strings.Contains(cond.Detail, "OncepostState") || !strings.Contains(cond.Detail, "register") {
			t.Errorf("report: %s", cond.Detail)
		}
		if pending(t, s) != 1 || failed(t, s) != 0 {
			t.Errorf("%d rows wait and %d failed, want 1 and 0", pending(t, s), failed(t, s))
		}
	})
}

// TestRemovedSearchAttribute: scenario 41 as it happens. Messages have started, then somebody removes the attribute.
func TestRemovedSearchAttribute(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "removed", 24*time.Hour)
		relay, conds, _ := runRelay(t, s.DSN, c, ns, starter.Config{})
		enqueue(t, s, welcome("before:1"), welcome("before:2"))
		testdb.Eventually(t, "two starts", func() bool { return relay.Stats().Started == 2 && pending(t, s) == 0 })
		_, err := c.OperatorService().RemoveSearchAttributes(t.Context(), &operatorservice.RemoveSearchAttributesRequest{
			Namespace: ns, SearchAttributes: []string{schemas.AttributeState},
		})
		if err != nil {
			t.Fatal(err)
		}
		var ms []outbox.Message
		for i := range 30 {
			ms = append(ms, welcome(fmt.Sprintf("after:%d", i)))
		}
		enqueue(t, s, ms...)
		conds.await(t, starter.CondMisconfigured)
		retried := relay.Stats().Retried
		testdb.Eventually(t, "more tries", func() bool { return relay.Stats().Retried > retried+20 })
		if pending(t, s) != 30 || failed(t, s) != 0 {
			t.Errorf("%d rows wait and %d failed, want 30 and 0", pending(t, s), failed(t, s))
		}
	})
}

// TestMissingAndRebuiltNamespace: scenario 48.
func TestMissingAndRebuiltNamespace(t *testing.T) {
	first, rebuilt := newTemporal(t, attributes), newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		c := dial(t, first.FrontendAddr(), "nowhere")
		_, conds, stop := runRelay(t, s.DSN, c, "nowhere", starter.Config{})
		cond := conds.await(t, starter.CondMisconfigured) // even with nothing to start
		if !strings.Contains(cond.Detail, "TEMPORAL_NAMESPACE") {
			t.Errorf("report: %s", cond.Detail)
		}
		stop()

		relay, _, stop := runRelay(t, s.DSN, dial(t, first.FrontendAddr(), "default"), "default", starter.Config{})
		enqueue(t, s, welcome("w:"+string(s.Flavour)))
		testdb.Eventually(t, "a start", func() bool { return relay.Stats().Started == 1 })
		stop()

		enqueue(t, s, welcome("x:"+string(s.Flavour)))
		relay, conds, stop = runRelay(t, s.DSN, dial(t, rebuilt.FrontendAddr(), "default"), "default", starter.Config{})
		cond = conds.await(t, starter.CondMisconfigured)
		if !strings.Contains(cond.Detail, "--rebind") {
			t.Errorf("report: %s", cond.Detail)
		}
		if pending(t, s) != 1 || relay.Stats().Started != 0 {
			t.Error("a row was started in a namespace that the outbox does not know")
		}
		stop()

		relay, _, _ = runRelay(t, s.DSN, dial(t, rebuilt.FrontendAddr(), "default"), "default", starter.Config{Rebind: true})
		testdb.Eventually(t, "a start after the rebind", func() bool { return relay.Stats().Started == 1 })
	})
}

// TestEveryStartAnswersInvalidArgument: scenario 41 with an answer that no table of texts knows, on real rows. It lasts for
// longer than a message's refusals take to show that it is to blame, and fresh rows come all the while.
func TestEveryStartAnswersInvalidArgument(t *testing.T) {
	t.Parallel()
	const lasts, look = 20 * time.Second, 100 * time.Millisecond
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		var wrong atomic.Bool
		var refused atomic.Int64
		wrong.Store(true)
		refuse := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if _, ok := req.(*workflowservice.StartWorkflowExecutionRequest); ok && wrong.Load() {
				refused.Add(1)
				return status.Error(codes.InvalidArgument, "something new")
			}
			return next(ctx, method, req, reply, cc, opts...)
		}
		ns, direct := newNamespace(t, temporal, s, "invalid", 24*time.Hour)
		c := dial(t, temporal.FrontendAddr(), ns, refuse)
		relay, conds, _ := runRelay(t, s.DSN, c, ns, starter.Config{})
		rows := 0
		more := func(n int) {
			var ms []outbox.Message
			for range n {
				ms = append(ms, welcome(fmt.Sprintf("m:%d", rows)))
				rows++
			}
			enqueue(t, s, ms...)
		}
		more(100)
		conds.await(t, starter.CondMisconfigured)
		probed, probes := time.Now(), refused.Load()
		for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(look) {
			more(2)
			if w, f := pending(t, s), failed(t, s); w != rows || f != 0 {
				t.Fatalf("%d rows wait and %d failed, want %d and 0", w, f, rows)
			}
			if n := refused.Load(); n > probes {
				probed, probes = time.Now(), n
			}
			if d := time.Since(probed); d > 12*time.Second { // a backoff of 10 s at most
				t.Fatalf("no start was tried for %s", d)
			}
		}
		if n := relay.Stats().Started; n != 0 {
			t.Errorf("%d starts", n)
		}
		wrong.Store(false)
		testdb.Eventually(t, "an empty outbox", func() bool { return pending(t, s) == 0 })
		countWorkflows(t, direct, int64(rows), "WorkflowType = 'welcome'")
		if n := failed(t, s); n != 0 {
			t.Errorf("%d messages were failed", n)
		}
		conds.awaitPassed(t, starter.CondMisconfigured)
	})
}

// TestDeliverAt: scenario 36. One message is an hour late; one is woken early, by a signal that nobody waits for.
func TestDeliverAt(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "deliver", 24*time.Hour)
		box := &mailbox{}
		runWorker(t, s.DSN, c, box)
		relay, _, _ := runRelay(t, s.DSN, c, ns, starter.Config{})
		past := welcome("past")
		past.DeliverAt = time.Now().Add(-time.Hour)
		due := time.Now().Add(6 * time.Second)
		woken := welcome("woken")
		woken.DeliverAt = due
		enqueue(t, s, past, woken)
		testdb.Eventually(t, "both started", func() bool { return relay.Stats().Started == 2 })
		if d, err := c.DescribeWorkflowExecution(t.Context(), "woken", ""); err != nil {
			t.Fatal(err)
		} else if got := string(d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()["OncepostState"].GetData()); got != `"scheduled"` {
			t.Errorf("state %s, want scheduled", got)
		}
		if err := c.SignalWorkflow(t.Context(), "woken", "", "hello", nil); err != nil {
			t.Fatal(err)
		}
		h, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: "woken", UpdateName: workflows.UpdateResolve, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{workflows.Resolution{Decision: workflows.DecisionSent, By: "someone", Why: "too early"}},
		})
		if err == nil {
			err = h.Get(t.Context(), nil)
		}
		if err == nil || !strings.Contains(err.Error(), "nothing is parked") {
			t.Errorf("an update that comes too early: %v", err)
		}
		testdb.Eventually(t, "both mails", func() bool { return box.count() == 2 })
		box.mu.Lock()
		defer box.mu.Unlock()
		for i, m := range box.mails {
			if m.MessageID == "woken" && box.at[i].Before(due) {
				t.Errorf("the mail went %s early", due.Sub(box.at[i]))
			}
		}
	})
}
