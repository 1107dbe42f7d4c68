package failed

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// Workflows are those of one namespace that oncepost has started.
type Workflows struct {
	Client    client.Client
	Namespace string
}

// Workflow is one that has failed.
type Workflow struct {
	Item
	Error string `json:"error,omitempty"` // with its addresses masked
}

// closed finds every run that failed, those included that were reset since.
const closed = schemas.AttributeState + " IS NOT NULL AND ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated')"

const pageSize = 200

func (w *Workflows) list(ctx context.Context, f Filter) (all []Item, err error) {
	query, seen := closed, map[string]bool{}
	if f.EventType != "" {
		query += " AND WorkflowType = '" + f.EventType + "'" // Validate has checked it
	}
	for token := []byte(nil); ; {
		page, err := w.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: w.Namespace, Query: query, PageSize: pageSize, NextPageToken: token,
		})
		if err != nil {
			return nil, fmt.Errorf("list the failed workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			if seen[id] {
				continue
			}
			seen[id] = true
			found, err := w.Show(ctx, id)
			if err != nil {
				return nil, err
			}
			if found == nil {
				continue // its last run has not failed
			}
			all = append(all, found.Item)
			if f.Limit > 0 && len(all) == f.Limit {
				return all, nil
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return all, nil
		}
	}
}

// Show returns the last run of a message's workflow where it has failed, else nil. One that was reset since has not.
func (w *Workflows) Show(ctx context.Context, id string) (*Workflow, error) {
	info, err := w.last(ctx, id)
	if err != nil || info == nil {
		return nil, err
	}
	found := &Workflow{Item: Item{
		Kind: KindWorkflow, MessageID: id, EventType: info.GetType().GetName(), Reason: info.GetStatus().String(),
		FailedAt: info.GetCloseTime().AsTime(), RunID: info.GetExecution().GetRunId(),
	}}
	failure, err := w.failure(ctx, id, found.RunID)
	if err != nil {
		return nil, err
	}
	found.Class, found.Error = Mask(failure.GetApplicationFailureInfo().GetType()), Mask(failure.GetMessage())
	return found, nil
}

// last describes the last run, where it has failed and is one of ours.
func (w *Workflows) last(ctx context.Context, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := w.Client.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) { // retention has just deleted it, or there never was one
		return nil, nil //nolint:nilnil // as documented
	}
	if err != nil {
		return nil, fmt.Errorf("ask Temporal for workflow %s: %w", id, err)
	}
	info := d.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
	default:
		return nil, nil //nolint:nilnil // as documented
	}
	if info.GetSearchAttributes().GetIndexedFields()[schemas.AttributeState] == nil || info.GetExecution().GetWorkflowId() != id {
		return nil, nil //nolint:nilnil // as documented
	}
	return info, nil
}

func (w *Workflows) failure(ctx context.Context, id, run string) (*failurepb.Failure, error) {
	events := w.Client.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the end of workflow %s: %w", id, err)
		}
		if a := e.GetWorkflowExecutionFailedEventAttributes(); a != nil {
			return a.GetFailure(), nil
		}
		if a := e.GetWorkflowExecutionTerminatedEventAttributes(); a != nil {
			return &failurepb.Failure{Message: a.GetReason()}, nil
		}
	}
	return nil, nil //nolint:nilnil // a time-out has none
}

// inVain are the classes that a retry does not cure: the ledger holds the outcome, and the run would end as the last one did.
var inVain = map[string]bool{activities.TypeRejected: true, activities.TypeKeyReused: true, activities.TypeInvalidKey: true}

// NeverError says that a retry would change nothing.
type NeverError struct{ Class string }

func (e *NeverError) Error() string {
	return fmt.Sprintf("it failed with %s, which the ledger keeps for good: a retry sends nothing more to whom it concerns; "+
		"enqueue a message with an ID of its own, or retry with --force for its other recipients", e.Class)
}

// ErrRunsAgain says that somebody else has retried the workflow.
var ErrRunsAgain = errors.New("its last run is another one by now: somebody has retried it")

// Retry resets a failed workflow to its first task. What was sent before the ledger keeps from being sent again. It returns
// the new run. Of two retries at the same moment the later one ends the earlier one's run, which the ledger stands as well.
func (w *Workflows) Retry(ctx context.Context, failed *Workflow, why string, force bool) (run string, err error) {
	if inVain[failed.Class] && !force {
		return "", &NeverError{failed.Class}
	}
	task, err := w.firstTask(ctx, failed.MessageID, failed.RunID)
	if err != nil {
		return "", err
	}
	if last, err := w.last(ctx, failed.MessageID); err != nil {
		return "", err
	} else if last.GetExecution().GetRunId() != failed.RunID {
		return "", ErrRunsAgain
	}
	r, err := w.Client.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         w.Namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: failed.MessageID, RunId: failed.RunID},
		Reason:            why, WorkflowTaskFinishEventId: task,
		RequestId: uuid.NewString(),
	})
	if err != nil {
		return "", fmt.Errorf("reset the workflow: %w", err)
	}
	return r.GetRunId(), nil
}

// firstTask is the first workflow task that was completed.
func (w *Workflows) firstTask(ctx context.Context, id, run string) (int64, error) {
	events := w.Client.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return 0, fmt.Errorf("read the workflow's history: %w", err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return e.GetEventId(), nil
		}
	}
	return 0, errors.New("no worker had begun it, so that there is nothing to reset to: enqueue it anew with an ID of its own")
}
