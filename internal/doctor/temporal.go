package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/schemas"
)

// temporal is the namespace as the checks see it.
type temporal struct {
	client    client.Client
	cfg       Config
	name      string
	namespace *workflowservice.DescribeNamespaceResponse
}

func checkTemporal(ctx context.Context, cfg Config) []Finding {
	t := &temporal{cfg: cfg}
	defer func() {
		if t.client != nil {
			t.client.Close()
		}
	}()
	return run(ctx, cfg.Timeout, []check{
		{name: "temporal.reachable", look: t.reachable, gate: true},
		{name: "temporal.namespace", look: t.described, gate: true},
		{name: "temporal.retention", look: t.retention},
		{name: "temporal.search-attributes", look: t.attributes},
		{name: "temporal.binding", look: t.binding},
		{name: "temporal.task-queues", look: t.pollers},
	})
}

func (t *temporal) reachable(ctx context.Context) (_ []Finding, err error) {
	if t.client, t.name, err = t.cfg.Dial(); err != nil {
		return find(Error, "put Temporal's own variables or its profile file right", "%s", err)
	}
	if _, err := t.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return find(Error, "see to it that TEMPORAL_ADDRESS and TEMPORAL_TLS_* are right, and that the server runs",
			"Temporal cannot be reached, so that nothing starts: %s", reason(err, t.cfg.Timeout))
	}
	return ok("Temporal can be reached")
}

func (t *temporal) described(ctx context.Context) ([]Finding, error) {
	described, err := t.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.name})
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return find(Error, fmt.Sprintf("create it: temporal operator namespace create --namespace %s --retention 168h; or put TEMPORAL_NAMESPACE right", t.name),
			"there is no namespace %s, so that nothing starts", t.name)
	}
	if err != nil {
		return nil, err
	}
	t.namespace = described
	if state := t.namespace.GetNamespaceInfo().GetState(); state != enumspb.NAMESPACE_STATE_REGISTERED {
		return find(Error, "use another namespace, and run the relay once with --rebind", "the namespace %s is %s", t.name, strings.ToLower(state.String()))
	}
	return ok("the namespace %s is there", t.name)
}

// The retention below which a message that comes again may be started again before anybody has looked.
const (
	shortRetention  = 72 * time.Hour
	enoughRetention = 7 * 24 * time.Hour
)

var errNoNamespace = errors.New("what Temporal knows of the namespace could not be read")

func (t *temporal) retention(context.Context) ([]Finding, error) {
	if t.namespace == nil {
		return nil, errNoNamespace
	}
	kept := t.namespace.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if kept >= enoughRetention {
		return ok("the namespace keeps closed workflows for %s", days(kept))
	}
	severity := Note
	if kept < shortRetention {
		severity = Warning
	}
	return find(severity, fmt.Sprintf("temporal operator namespace update --namespace %s --retention 168h", t.name),
		"the namespace keeps closed workflows for %s: a message whose row outlives that, in an outage or enqueued again, starts a second workflow. It must be longer than the longest outage", days(kept))
}

func days(d time.Duration) string {
	if d%(24*time.Hour) == 0 && d > 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}

func (t *temporal) attributes(ctx context.Context) (found []Finding, err error) {
	has, err := t.client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: t.name})
	if err != nil {
		return find(Note, "see to it that OncepostState is a Keyword and OncepostSince a Datetime there", "the search attributes cannot be listed: %s", reason(err, t.cfg.Timeout))
	}
	for _, a := range []struct {
		name, kind string
		want       enumspb.IndexedValueType
	}{
		{schemas.AttributeState, "Keyword", enumspb.INDEXED_VALUE_TYPE_KEYWORD},
		{schemas.AttributeSince, "Datetime", enumspb.INDEXED_VALUE_TYPE_DATETIME},
	} {
		create := fmt.Sprintf("temporal operator search-attribute create --namespace %s --name %s --type %s", t.name, a.name, a.kind)
		switch got, there := has.GetCustomAttributes()[a.name]; {
		case !there:
			found = append(found, Finding{Severity: Error, Text: fmt.Sprintf("the search attribute %s is not registered: Temporal refuses every start", a.name), Do: create})
		case got != a.want:
			found = append(found, Finding{
				Severity: Error, Text: fmt.Sprintf("the search attribute %s is a %s and not a %s: Temporal refuses every start", a.name, got, a.kind),
				Do: "remove it, and then " + create,
			})
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return ok("the search attributes are registered")
}

// binding compares the namespace with the one that the outbox remembers.
func (t *temporal) binding(ctx context.Context) ([]Finding, error) {
	if t.namespace == nil {
		return nil, errNoNamespace
	}
	name, id, err := t.remembered(ctx)
	switch own := t.namespace.GetNamespaceInfo().GetId(); {
	case errors.Is(err, sql.ErrNoRows):
		return ok("the outbox remembers no namespace yet: the first relay binds it to %s", t.name)
	case err != nil:
		return find(Note, "put the database right first", "the namespace that the outbox remembers cannot be read: %s", reason(err, t.cfg.Timeout))
	case id != own:
		return find(Error, "put TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE right; where this namespace is to be the outbox's own from now on, run `oncepost relay --rebind` once",
			"the outbox feeds the namespace %s with the UUID %s, but here %s with the UUID %s is reached: a relay starts nothing in it", name, id, t.name, own)
	}
	return ok("it is the namespace that the outbox remembers")
}

func (t *temporal) remembered(ctx context.Context) (name, id string, err error) {
	db, err := t.cfg.OpenDB()
	if err != nil {
		return "", "", err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT namespace, namespace_id FROM outbox_binding WHERE id = 1").Scan(&name, &id)
	return name, id, err
}

func (t *temporal) pollers(ctx context.Context) ([]Finding, error) {
	var idle []string
	for _, q := range []struct {
		name string
		kind enumspb.TaskQueueType
	}{{schemas.WorkflowTaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW}, {schemas.SendTaskQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY}} {
		r, err := t.client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: t.name, TaskQueue: &taskqueuepb.TaskQueue{Name: q.name}, TaskQueueType: q.kind,
		})
		if err != nil {
			return nil, err
		}
		if len(r.GetPollers()) == 0 {
			idle = append(idle, q.name)
		}
	}
	if len(idle) > 0 {
		return find(Note, "start `oncepost worker`; while sending is stopped (`oncepost sending status`) nobody serves oncepost-send",
			"nobody has served these task queues in the last minutes, so that messages wait there: %s", strings.Join(idle, ", "))
	}
	return ok("workers serve the task queues")
}
