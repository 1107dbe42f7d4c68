package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
)

// noted is an event type of the test's own: its workflow ends at once.
func noted(workflow.Context, converter.RawValue, schemas.Envelope) error { return nil }

// TestPoisonThatTemporalItselfRefuses: scenario 3. The first message is larger than this Temporal takes, and good for all
// that the table knows; the 999 behind it run to their ends.
func TestPoisonThatTemporalItselfRefuses(t *testing.T) {
	t.Parallel() // it waits, most of the time
	temporal := startTemporal(t, devtemporal.Options{SearchAttributes: attributes, DynamicConfig: map[string]any{
		"limit.blobSize.error": 64 << 10, "limit.blobSize.warn": 32 << 10,
	}})
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "poison", 24*time.Hour)
		w := worker.New(c, schemas.WorkflowTaskQueue, worker.Options{})
		w.RegisterWorkflowWithOptions(noted, workflow.RegisterOptions{Name: "noted"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		const poison = "!poison" // before all others in its shard
		enqueue(t, s, outbox.Message{ID: poison, EventType: "noted", Payload: strings.Repeat("x", 100<<10)})
		good := make([]outbox.Message, 999)
		for i := range good {
			good[i] = outbox.Message{ID: fmt.Sprintf("good:%03d", i), EventType: "noted", Payload: i}
		}
		enqueue(t, s, good...)
		relay, conds, _ := runRelay(t, s.DSN, c, ns, starter.Config{})
		countWorkflows(t, c, 999, "ExecutionStatus = 'Completed'")
		testdb.Eventually(t, "an empty outbox", func() bool { return pending(t, s) == 0 })

		cond := conds.await(t, starter.CondFailed)
		if cond.MessageID != poison {
			t.Errorf("report: %+v", cond)
		}
		if id := testdb.Value[string](t, s.DB, "SELECT message_id FROM outbox_failed"); id != poison || failed(t, s) != 1 {
			t.Errorf("%d rows failed, and one is %q", failed(t, s), id)
		}
		if reason := testdb.Value[string](t, s.DB, "SELECT reason FROM outbox_failed"); reason != outbox.ReasonNeverStarts {
			t.Errorf("reason %q", reason)
		}
		if detail := testdb.Value[string](t, s.DB, "SELECT detail FROM outbox_failed"); !strings.Contains(detail, "Blob data size exceeds limit") {
			t.Errorf("detail %q, want Temporal's own words", detail)
		}
		if size := testdb.Value[int](t, s.DB, "SELECT OCTET_LENGTH(payload) FROM outbox_failed"); size != 100<<10+2 {
			t.Errorf("%d bytes of its payload were kept", size)
		}
		var unknown *serviceerror.NotFound
		if _, err := c.DescribeWorkflowExecution(t.Context(), poison, ""); !errors.As(err, &unknown) {
			t.Errorf("Temporal knows of it: %v", err)
		}
		if st := relay.Stats(); st.Started+st.Duplicates != 999 || st.Failed != 1 { // an answer may be late, and the start made again
			t.Errorf("stats: %+v", st)
		}
	})
}
