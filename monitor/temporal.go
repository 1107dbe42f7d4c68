package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/schemas"
)

// temporalTimeout bounds each call.
const temporalTimeout = 3 * time.Second

// temporal reads what Temporal tells.
type temporal struct {
	client    client.Client
	namespace string
}

// probe asks whether the namespace answers.
func (t *temporal) probe(ctx context.Context) Part {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	part := Part{Name: t.namespace}
	if _, err := t.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.namespace}); err != nil {
		part.Error = err.Error()
		return part
	}
	part.OK = true
	return part
}

// Lists are the visibility queries behind the numbers of Workflows, for the web UI's list of workflows.
type Lists struct{ Running, Parked, ParkedLong, Stuck, TasksFail, Failed string }

// ListsAt returns the queries at a moment.
func ListsAt(now time.Time, t Thresholds) Lists {
	const running = " AND ExecutionStatus = 'Running'"
	ago := func(d time.Duration) string { return "'" + now.Add(-d).UTC().Format(time.RFC3339) + "'" }
	return Lists{
		Running:    schemas.AttributeState + " IS NOT NULL" + running,
		Parked:     fmt.Sprintf("%s = '%s'", schemas.AttributeState, schemas.StateParked) + running,
		ParkedLong: fmt.Sprintf("%s = '%s' AND %s < %s", schemas.AttributeState, schemas.StateParked, schemas.AttributeSince, ago(t.Parked)) + running,
		// A message with a delay is "scheduled" until its first task, from when it is due.
		Stuck: fmt.Sprintf("%s IN ('%s', '%s') AND %s < %s", schemas.AttributeState, schemas.StateSending, schemas.StateScheduled,
			schemas.AttributeSince, ago(t.Stuck)) + running,
		TasksFail: "TemporalReportedProblems IN ('category=WorkflowTaskFailed', 'category=WorkflowTaskTimedOut') AND " +
			schemas.AttributeState + " IS NOT NULL" + running,
		Failed: schemas.AttributeState + " IS NOT NULL AND ExecutionStatus IN ('Failed', 'TimedOut') AND CloseTime > " + ago(failedFor),
	}
}

// failedFor is for how long a workflow that has failed is counted.
const failedFor = time.Hour

// counts fills in the numbers of workflows and the backlogs of the task queues. What cannot be counted stays unknown, and hides nothing else.
func (t *temporal) counts(ctx context.Context, s *State, th Thresholds) error {
	lists := ListsAt(s.At, th)
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, c := range []struct {
		query string
		into  **int64
	}{
		{lists.Running, &s.Workflows.Running},
		{lists.Parked, &s.Workflows.Parked},
		{lists.ParkedLong, &s.Workflows.ParkedLong},
		{lists.Stuck, &s.Workflows.Stuck},
		{lists.TasksFail, &s.Workflows.TasksFail},
		{lists.Failed, &s.Workflows.Failed},
	} {
		all.Go(func() {
			n, err := t.count(ctx, c.query)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("count workflows by %s: %w", c.query, err))
				return
			}
			*c.into = &n
		})
	}
	queues := []Queue{
		{Name: schemas.WorkflowTaskQueue, Kind: "workflow"}, {Name: schemas.WorkflowTaskQueue, Kind: "activity"}, {Name: schemas.SendTaskQueue, Kind: "activity"},
	}
	for i := range queues {
		all.Go(func() {
			if err := t.backlog(ctx, &queues[i]); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("ask for the backlog of task queue %s: %w", queues[i].Name, err))
				queues[i].Name = ""
			}
		})
	}
	all.Wait()
	s.Queues = slices.DeleteFunc(queues, func(q Queue) bool { return q.Name == "" })
	return errors.Join(errs...)
}

func (t *temporal) count(ctx context.Context, query string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	r, err := t.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: t.namespace, Query: query})
	return r.GetCount(), err
}

var queueTypes = map[string]enumspb.TaskQueueType{
	"workflow": enumspb.TASK_QUEUE_TYPE_WORKFLOW, "activity": enumspb.TASK_QUEUE_TYPE_ACTIVITY,
}

func (t *temporal) backlog(ctx context.Context, q *Queue) error {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	r, err := t.client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: t.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: q.Name}, TaskQueueType: queueTypes[q.Kind], ReportStats: true,
	})
	q.Backlog, q.BacklogAge = r.GetStats().GetApproximateBacklogCount(), r.GetStats().GetApproximateBacklogAge().AsDuration().Seconds()
	return err
}

// serving is how many live processes say that they serve a task queue. Temporal's own list of pollers keeps those that have died
// for minutes.
func (s *State) serving(queue string) (n int) {
	for _, p := range s.Processes {
		if p.Alive && p.Worker != nil && slices.Contains(p.Worker.TaskQueues, queue) {
			n++
		}
	}
	return n
}
