package integration

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
)

// echo is an event type of the test's own: an activity gets the payload, and says what it got.
func echo(ctx workflow.Context, payload converter.RawValue, _ schemas.Envelope) (got string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	err = workflow.ExecuteActivity(ctx, "bytes", payload).Get(ctx, &got)
	return got, err
}

func digest(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// TestThePayloadReachesTheActivityByteForByte: scenarios 10, 11 and 15 over the whole way, on databases whose sessions
// speak whatever they speak.
func TestThePayloadReachesTheActivityByteForByte(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "bytes", 24*time.Hour)
		w := worker.New(c, schemas.WorkflowTaskQueue, worker.Options{})
		w.RegisterWorkflowWithOptions(echo, workflow.RegisterOptions{Name: "echo"})
		w.RegisterActivityWithOptions(func(_ context.Context, p converter.RawValue) (string, error) {
			return digest(string(p.Payload().GetData())), nil
		}, activity.RegisterOptions{Name: "bytes"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		runRelay(t, s.DSN, c, ns, starter.Config{})
		edges := "\u0001\u007f\u0080ÿĀ߿\u0800\u2028\u2029퟿\ue000\ufeff�\ufffe\uffff𐀀👩‍👩‍👧‍👦 İ ß"
		for id, payload := range map[string]string{
			"numbers": `{ "z":9007199254740993, "a" : 3544790567247868102,"m":1.10,"e":1E40, "A":-0 }`,
			"edges":   `{"text":"` + strings.ReplaceAll(edges, "\u0001", `\u0001`) + `"}`,
			"inline":  `"` + strings.Repeat("é", 4<<10-1) + `"`,
			"large":   `{"text":"` + edges[1:] + strings.Repeat("é", 32<<10) + `"}`,
			"largest": `"` + strings.Repeat("x", 1<<20-2) + `"`,
		} {
			if _, err := s.DB.ExecContext(t.Context(), "INSERT INTO outbox_messages (message_id, event_type, payload) VALUES (?, 'echo', ?)", id, payload); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			testdb.Eventually(t, id+" is started", func() bool { return pending(t, s) == 0 })
			var got string
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			err := c.GetWorkflow(ctx, id, "").Get(ctx, &got)
			cancel()
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			if got != digest(payload) {
				t.Errorf("%s: %d bytes were changed on the way", id, len(payload))
			}
		}
	})
}
