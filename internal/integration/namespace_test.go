package integration

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

// A worker that is started before its namespace says so, stays, and serves once the namespace is there.
func TestWorkerWaitsForItsNamespace(t *testing.T) {
	temporal := newTemporal(t, attributes)
	c := dial(t, temporal.FrontendAddr(), "later")
	box, said := &mailbox{}, &lines{}
	acts := activitiesOn(t, box)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{
			Client: c, Activities: acts, Started: func() { close(started) }, Logger: slog.New(slog.NewTextHandler(said, nil)),
		}, workflows.Builtin())
	}()
	testdb.Eventually(t, "the worker says that there is no namespace", func() bool {
		select {
		case err := <-done:
			t.Fatalf("the worker ended: %v", err)
		default:
		}
		return strings.Count(said.String(), "the Temporal namespace does not exist, will try again") >= 2
	})
	if err := temporal.CreateNamespace(t.Context(), "later", 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
	case err := <-done:
		t.Fatalf("the worker ended: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the worker has not started")
	}
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w:1", TaskQueue: schemas.WorkflowTaskQueue}, "welcome",
		welcome("w:1").Payload, schemas.Envelope{MessageID: "w:1", EventType: "welcome", Priority: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); err != nil || box.count() != 1 {
		t.Errorf("%d mails: %v", box.count(), err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// activitiesOn are a worker's activities, on any server.
func activitiesOn(t *testing.T, box *mailbox) *activities.Activities {
	t.Helper()
	s := testdb.NewSchema(t, testdb.Flavours()[0])
	migrateUp(t, s)
	return newActivities(t, s.DSN, box)
}

// A worker ends in order while it waits for its namespace.
func TestWorkerStopsWhileItWaits(t *testing.T) {
	c := dial(t, newTemporal(t, attributes).FrontendAddr(), "never")
	acts := activitiesOn(t, &mailbox{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, done := &lines{}, make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{Client: c, Activities: acts, Logger: slog.New(slog.NewTextHandler(said, nil))}, workflows.Builtin())
	}()
	testdb.Eventually(t, "the worker says that there is no namespace", func() bool { return strings.Contains(said.String(), "namespace does not exist") })
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the worker has not ended")
	}
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
