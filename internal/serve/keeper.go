package serve

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Keeper implements ledger.Keeper by asking Temporal.
type Keeper struct {
	Client    client.Client
	Namespace string
}

// Retention is for how long the namespace keeps closed workflows, which can be reset until then.
func (k Keeper) Retention(ctx context.Context) (time.Duration, error) {
	r, err := k.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: k.Namespace})
	if err != nil {
		return 0, err
	}
	return r.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), nil
}

// Known reports whether the namespace has a workflow of the message.
func (k Keeper) Known(ctx context.Context, messageID string) (bool, error) {
	_, err := k.Client.DescribeWorkflowExecution(ctx, messageID, "")
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return false, nil
	}
	return err == nil, err
}
