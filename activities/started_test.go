package activities

import (
	"context"
	"errors"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
)

// histories answers as a Temporal that knows one workflow's history. That it really does is a test of package integration.
type histories struct {
	events []*historypb.HistoryEvent
	err    error
	asked  *workflowservice.GetWorkflowExecutionHistoryRequest
}

func (h *histories) GetWorkflowExecutionHistory(
	_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	h.asked = r
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: h.events}}, h.err
}

// startedEvent is the first event of a workflow that was started with the arguments.
func startedEvent(args ...*commonpb.Payload) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			Input: &commonpb.Payloads{Payloads: args},
		},
	}}
}

func encoded(encoding, data string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: []byte(data)}
}

func TestThePayloadInHistory(t *testing.T) {
	h := &histories{events: []*historypb.HistoryEvent{startedEvent(encoded("json/plain", welcomePayload), encoded("json/plain", `{}`)), {}}}
	got, err := startedWith(t.Context(), h, "mail", workflow.Execution{ID: "w:1", RunID: "run"})
	if err != nil || string(got) != welcomePayload {
		t.Errorf("payload %s, %v", got, err)
	}
	if e := h.asked.GetExecution(); e.GetWorkflowId() != "w:1" || e.GetRunId() != "run" || h.asked.GetNamespace() != "mail" {
		t.Errorf("asked for %+v", h.asked)
	}
}

// What cannot be read now may be read later; an encoding that is not JSON's never can.
func TestHistoryThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     histories
		says  string
		never bool
	}{
		{"Temporal is away", histories{err: serviceerror.NewUnavailable("away")}, "read the payload from the workflow's history: away", false},
		{"no events", histories{}, "no events", false},
		{"no input", histories{events: []*historypb.HistoryEvent{startedEvent()}}, "no input", false},
		{"encrypted", histories{events: []*historypb.HistoryEvent{startedEvent(encoded("binary/encrypted", "secret"))}}, `"binary/encrypted", must be json/plain`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := startedWith(t.Context(), &c.h, "mail", workflow.Execution{ID: "w:1", RunID: "run"})
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			var app *temporal.ApplicationError
			if final := errors.As(err, &app) && app.NonRetryable() && app.Type() == TypeInvalidPayload; final != c.never {
				t.Errorf("final: %v, want %v: %v", final, c.never, err)
			}
		})
	}
}
