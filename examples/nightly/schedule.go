package nightly

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/locks"
)

// TaskQueue is the job's own.
const TaskQueue = "nightly"

// Zone is where the day begins.
const Zone = "Asia/Seoul"

// scheduledFor is when Temporal meant the run to start; after an outage that may have been long ago.
var scheduledFor = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// LeaveAccrual is the workflow of one day.
func LeaveAccrual(ctx workflow.Context) (added int64, err error) {
	at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledFor)
	if !ok {
		at = workflow.Now(ctx) // started by hand
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Minute})
	err = workflow.ExecuteActivity(ctx, Job.AccrueAt, at).Get(ctx, &added)
	return added, err
}

// AccrueAt is the activity: the day that a time is in. Time zones are files, which a workflow must not read.
func (j Job) AccrueAt(ctx context.Context, at time.Time) (added int64, err error) {
	zone, err := time.LoadLocation(Zone)
	if err != nil {
		return 0, err
	}
	return j.Accrue(ctx, locks.Day(at.In(zone)))
}

// Schedule makes the schedule, where it is not there yet: at 03:00 each day, one run at a time, and a run that was missed because
// Temporal was away is made up for within a day.
func Schedule(ctx context.Context, c client.Client) (client.ScheduleHandle, error) {
	const id = "leave-accrual"
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: id,
		Spec: client.ScheduleSpec{
			Calendars:    []client.ScheduleCalendarSpec{{Hour: []client.ScheduleRange{{Start: 3}}}},
			TimeZoneName: Zone,
		},
		Action:        &client.ScheduleWorkflowAction{ID: id, Workflow: LeaveAccrual, TaskQueue: TaskQueue},
		Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: 24 * time.Hour,
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return nil, err
	}
	return c.ScheduleClient().GetHandle(ctx, id), nil
}

// Worker returns a worker that does the job's runs.
func (j Job) Worker(c client.Client) worker.Worker {
	w := worker.New(c, TaskQueue, worker.Options{})
	w.RegisterWorkflow(LeaveAccrual)
	w.RegisterActivity(j.AccrueAt)
	return w
}
