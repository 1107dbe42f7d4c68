package workflows

import (
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// TestStoredHistoriesReplay replays what real runs left behind against the present code. A history is never regenerated to
// make this pass: whoever changes a workflow keeps the old way behind a version marker.
func TestStoredHistoriesReplay(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	for _, typ := range Builtin().Types() {
		r.RegisterWorkflowWithOptions(typ.Workflow, workflow.RegisterOptions{Name: typ.Name})
	}
	for _, file := range stored(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if err := r.ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
				t.Error(err)
			}
		})
	}
}

func stored(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("stored histories: %v, %d found", err, len(files))
	}
	return files
}

// brokenSendMail is SendMail with a timer in front, as a careless change would add it.
func brokenSendMail(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	if err := workflow.Sleep(ctx, 1); err != nil {
		return Result{}, err
	}
	m, err := newMailing(ctx, payload, msg, Resend)
	if err != nil {
		return Result{}, err
	}
	return m.sendAll(ctx, "mail", []activities.Address{{Email: "a@example.com"}})
}

// TestReplayCatchesABreak is the test of the test.
func TestReplayCatchesABreak(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(brokenSendMail, workflow.RegisterOptions{Name: "welcome"})
	err := r.ReplayWorkflowHistoryFromJSONFile(nil, "testdata/histories/welcome_sent.json")
	if err == nil || !strings.Contains(err.Error(), "TMPRL1100") {
		t.Errorf("replay of a broken workflow: %v, want a non-determinism error", err)
	}
}
