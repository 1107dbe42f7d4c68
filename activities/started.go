package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
)

// MaxInline is the size in bytes up to which a payload is given to each send as its argument. Temporal takes 4 MiB at once
// and ends a workflow that asks for more, so many sends cannot each carry a large payload: they get FromHistory.
const MaxInline = 32 << 10

var null = []byte("null")

// FromHistory stands for the payload that the workflow was started with: JSON null, which is no message's payload.
func FromHistory() converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: null,
	})
}

// historian is the part of Temporal's client that gives a workflow's history.
type historian interface {
	GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest, ...grpc.CallOption) (
		*workflowservice.GetWorkflowExecutionHistoryResponse, error)
}

// bytesOf returns the payload's bytes: those given, or the workflow's own where FromHistory stands for them.
func bytesOf(ctx context.Context, payload converter.RawValue) ([]byte, error) {
	if given := payload.Payload().GetData(); !bytes.Equal(given, null) {
		return given, nil
	}
	info := activity.GetInfo(ctx)
	return startedWith(ctx, activity.GetClient(ctx).WorkflowService(), info.Namespace, info.WorkflowExecution)
}

// startedWith reads the first argument of a workflow, which is in the first event of its history. An error of type
// InvalidPayload is final.
func startedWith(ctx context.Context, h historian, namespace string, of workflow.Execution) ([]byte, error) {
	answer, err := h.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace:       namespace,
		Execution:       &commonpb.WorkflowExecution{WorkflowId: of.ID, RunId: of.RunID},
		MaximumPageSize: 1, // a page holds whole transactions: the first one is the start
	})
	if err != nil {
		return nil, fmt.Errorf("read the payload from the workflow's history: %w", err)
	}
	events := answer.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil, errors.New("read the payload from the workflow's history: no events came")
	}
	input := events[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()
	if len(input) == 0 {
		return nil, errors.New("read the payload from the workflow's history: its first event has no input")
	}
	if encoding := string(input[0].GetMetadata()[converter.MetadataEncoding]); encoding != converter.MetadataEncodingJSON {
		return nil, never(TypeInvalidPayload, fmt.Errorf(
			"the payload in the workflow's history has the encoding %q, must be %s", encoding, converter.MetadataEncodingJSON))
	}
	return input[0].GetData(), nil
}
