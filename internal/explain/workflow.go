package explain

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// readWorkflow reads the last run of the message's workflow, or nil where there is none.
func readWorkflow(ctx context.Context, c client.Client, s Sources, id string) (*Workflow, error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil, nil //nolint:nilnil // no workflow is no error
	}
	if err != nil {
		return nil, fmt.Errorf("ask Temporal for the workflow: %w", err)
	}
	info := d.GetWorkflowExecutionInfo()
	w := &Workflow{
		EventType: info.GetType().GetName(), RunID: info.GetExecution().GetRunId(), Status: info.GetStatus().String(),
		StartedAt: info.GetStartTime().AsTime(), ClosedAt: when(info.GetCloseTime()), URL: s.link(id, info.GetExecution().GetRunId()),
	}
	if due := info.GetExecutionTime(); due.AsTime().After(w.StartedAt.Add(time.Second)) {
		w.DueAt = when(due)
	}
	if state := info.GetSearchAttributes().GetIndexedFields()[schemas.AttributeState]; state != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(state, &w.State); err != nil {
			return nil, fmt.Errorf("read the search attribute %s: %w", schemas.AttributeState, err)
		}
	}
	if w.Steps, err = history(ctx, c, id, w.RunID); err != nil {
		return nil, err
	}
	w.Steps = append(w.Steps, pending(d)...)
	w.Failing = max(0, int(d.GetPendingWorkflowTask().GetAttempt())-1)
	if w.State == schemas.StateParked && w.ClosedAt == nil {
		w.Details = currentDetails(ctx, c, id, w.RunID)
	}
	return w, nil
}

func when(t *timestamppb.Timestamp) *time.Time {
	if t == nil {
		return nil
	}
	at := t.AsTime()
	return &at
}

// currentDetails asks a worker; where none answers the report goes without them.
func currentDetails(ctx context.Context, c client.Client, id, run string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, id, run, "__temporal_workflow_metadata")
	var m sdkpb.WorkflowMetadata
	if err == nil {
		err = v.Get(&m)
	}
	if err != nil {
		return "(what it waits for is not to be had: " + err.Error() + ")"
	}
	return m.GetCurrentDetails()
}

// history turns the events of a run into steps.
func history(ctx context.Context, c client.Client, id, run string) (steps []Step, err error) {
	scheduled, attempts := map[int64]string{}, map[int64]int{}
	events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the workflow's history: %w", err)
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			scheduled[e.GetEventId()] = summary(e, a.GetActivityType().GetName())
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			attempts[a.GetScheduledEventId()] = int(a.GetAttempt())
		}
		if step, ok := step(e, scheduled, attempts); ok {
			step.At = e.GetEventTime().AsTime()
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// summary is what the web UI shows of an activity.
func summary(e *historypb.HistoryEvent, otherwise string) (s string) {
	if p := e.GetUserMetadata().GetSummary(); p != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(p, &s); err == nil && s != "" {
			return s
		}
	}
	return otherwise // another codec's: the type's name says enough
}

// step is what an event tells, if anything.
func step(e *historypb.HistoryEvent, scheduled map[int64]string, attempts map[int64]int) (s Step, told bool) {
	activity := func(id int64, outcome string) { s = Step{What: scheduled[id], Attempt: attempts[id], Outcome: outcome} }
	switch {
	case e.GetActivityTaskCompletedEventAttributes() != nil:
		activity(e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(), "done")
		if class := unknown(e.GetActivityTaskCompletedEventAttributes().GetResult()); class != "" {
			s.Outcome, s.Class = "unknown", class
		}
	case e.GetActivityTaskFailedEventAttributes() != nil:
		a := e.GetActivityTaskFailedEventAttributes()
		activity(a.GetScheduledEventId(), "failed for good")
		s.Class, s.Error = a.GetFailure().GetApplicationFailureInfo().GetType(), a.GetFailure().GetMessage()
	case e.GetActivityTaskTimedOutEventAttributes() != nil:
		activity(e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(), "timed out for good")
	case e.GetActivityTaskCanceledEventAttributes() != nil:
		activity(e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), "cancelled")
	case e.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil:
		s = Step{What: "update " + e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName(), Outcome: "accepted"}
	case e.GetWorkflowExecutionSignaledEventAttributes() != nil:
		s = Step{What: "signal " + e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName(), Outcome: "received"}
	case e.GetTimerStartedEventAttributes() != nil:
		s = Step{What: "timer of " + e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration().String(), Outcome: "set"}
	case e.GetTimerFiredEventAttributes() != nil:
		s = Step{What: "timer", Outcome: "fired"}
	case strings.HasPrefix(e.GetEventType().String(), "WorkflowExecution") && closing[e.GetEventType()] != "":
		s = Step{What: "workflow", Outcome: closing[e.GetEventType()]}
		if f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure(); f != nil {
			s.Class, s.Error = f.GetApplicationFailureInfo().GetType(), f.GetMessage()
		}
	}
	return s, s.What != ""
}

// unknown is the class of a send of which nobody knows whether it was sent, or "".
func unknown(result *commonpb.Payloads) string {
	var r activities.SendResult
	if err := converter.GetDefaultDataConverter().FromPayloads(result, &r); err != nil || r.Unknown == nil {
		return "" // another activity's, or another codec's: "done" is true of both
	}
	return r.Unknown.Class
}

var closing = map[enumspb.EventType]string{
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:  "completed",
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:     "failed",
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:   "cancelled",
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: "terminated",
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:  "timed out",
}

// pending are the activities under way, with their last failure.
func pending(d *workflowservice.DescribeWorkflowExecutionResponse) (steps []Step) {
	for _, a := range d.GetPendingActivities() {
		s := Step{
			At: a.GetScheduledTime().AsTime(), What: a.GetActivityType().GetName(), Outcome: "under way", Attempt: int(a.GetAttempt()),
			Class: a.GetLastFailure().GetApplicationFailureInfo().GetType(), Error: a.GetLastFailure().GetMessage(),
		}
		switch {
		case a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:
		case a.GetLastFailure() != nil:
			s.Outcome, s.NextAt = "waits for its next attempt", when(a.GetNextAttemptScheduleTime())
			s.Attempt-- // Temporal counts the one to come
		default:
			s.Outcome, s.Attempt = "waits for a worker", 0
		}
		steps = append(steps, s)
	}
	return steps
}

// waits says that an activity is in its queue.
func (s Step) waits() bool { return strings.HasPrefix(s.Outcome, "waits for ") }

// link is the run's page in the web UI, or "" where nobody has said where that is.
func (s Sources) link(id, run string) string {
	if s.UI == "" {
		return ""
	}
	return strings.TrimSuffix(s.UI, "/") + "/namespaces/" + url.PathEscape(s.Namespace) + "/workflows/" + url.PathEscape(id) + "/" + run + "/history"
}
