package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the housekeeping in Temporal: the workflow, its one activity, and the Schedule that starts it.
const (
	HousekeepingName     = "oncepost.housekeeping"
	SweepName            = "Sweep"
	HousekeepingSchedule = "oncepost-housekeeping"
)

// Swept is how many rows the housekeeping has deleted.
type Swept struct {
	Sends     int64 `json:"sends"`
	Failed    int64 `json:"outbox_failed"`
	JobRuns   int64 `json:"job_runs"`
	Processes int64 `json:"processes"`
}

// Housekeeping deletes what is old in oncepost's tables. A worker lets a Schedule start it.
func Housekeeping(ctx workflow.Context) (s Swept, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Minute,
		Summary: "delete what is old",
		// The next run tries again.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumAttempts: 3},
	})
	err = workflow.ExecuteActivity(ctx, SweepName).Get(ctx, &s)
	return s, err
}
