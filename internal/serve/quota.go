package serve

import (
	"context"
	"log/slog"
	"math"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/worker"
)

const (
	rateEvery = time.Minute
	rateAgain = 5 * time.Second // where Temporal cannot be told
	rateCall  = 15 * time.Second
)

// Rate says how many mails a second all workers together may send.
type Rate struct {
	// Fixed is the rate; 0 is no limit. nil: the account's own, times Share.
	Fixed *float64
	// Share of the account's rate. Default 0.9.
	Share float64
}

// quota watches the account's quota for what follows from it: the rate limit of the sends' task queue, on Temporal's server, and
// the reserve for alerts. Any worker may, and each does: they have the same account. The rate is set where the process begins and
// where what it wants changes, so that workers with different flags do not undo each other's again and again: the last one holds.
type quota struct {
	client    client.Client
	namespace string
	account   worker.Account // nil where the Mailer tells nothing
	stops     worker.Stops
	rate      Rate
	logger    *slog.Logger
	every     time.Duration // at most so long between two looks
	tally     *Tally

	silent  bool     // it has been said that the quota cannot be read
	refused bool     // it has been said that the rate cannot be set
	set     *float64 // what this process has set, nil = nothing yet
}

func (w *quota) run(ctx context.Context) {
	for pause := time.Duration(0); ; {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = w.look(ctx)
	}
}

// look does what the quota asks for, and says when to look again.
func (w *quota) look(ctx context.Context) time.Duration {
	q, read := w.read(ctx)
	pause := w.every
	if read {
		pause = w.keepReserve(ctx, q)
	}
	if rps, known := w.wanted(q, read); known && (w.set == nil || !same(*w.set, rps)) {
		if err := w.apply(ctx, rps); err != nil {
			w.unset(ctx, err)
			return min(pause, rateAgain)
		}
		w.set, w.refused = &rps, false
	}
	return pause
}

// unset says once that Temporal has not taken the rate.
func (w *quota) unset(ctx context.Context, err error) {
	if !w.refused && ctx.Err() == nil {
		w.logger.Warn("the rate of sends cannot be set; it stays as it is, and this is tried again and again", "error", err, "every", rateAgain)
		w.refused = true
	}
}

// read asks for the quota. That it cannot be read is said once.
func (w *quota) read(ctx context.Context) (q activities.Quota, ok bool) {
	if w.account == nil {
		return q, false
	}
	call, cancel := context.WithTimeout(ctx, rateCall)
	defer cancel()
	q, err := w.account.Quota(call)
	if err == nil {
		w.silent = false
		w.tally.asked(q)
		return q, true
	}
	if !w.silent && ctx.Err() == nil {
		w.logger.Warn("the account's quota cannot be read (the right ses:GetSendQuota is needed); there is no reserve for alerts, and no rate "+
			"but --send-rate", "error", err)
		w.silent = true
	}
	return q, false
}

// wanted is the rate as it should be; negative is no limit. Where it cannot be known the limit stays as it is.
func (w *quota) wanted(q activities.Quota, read bool) (rps float64, known bool) {
	switch f := w.rate.Fixed; {
	case f != nil && *f == 0:
		return -1, true
	case f != nil:
		return *f, true
	case !read:
		return 0, false
	case q.PerSecond <= 0:
		return -1, true
	}
	return q.PerSecond * w.rate.Share, true
}

// apply sets the limit where it is another.
func (w *quota) apply(ctx context.Context, rps float64) error {
	ctx, cancel := context.WithTimeout(ctx, rateCall)
	defer cancel()
	service := w.client.WorkflowService()
	now, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: w.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: schemas.SendTaskQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportConfig: true,
	})
	if err != nil {
		return err
	}
	have := -1.0
	if l := now.GetConfig().GetQueueRateLimit().GetRateLimit(); l != nil {
		have = float64(l.GetRequestsPerSecond())
	}
	if same(have, rps) {
		return nil
	}
	update := &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{Reason: "oncepost: the rate of sends"}
	if rps >= 0 {
		update.RateLimit = &taskqueuepb.RateLimit{RequestsPerSecond: float32(rps)}
	}
	_, err = service.UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace: w.namespace, Identity: "oncepost", TaskQueue: schemas.SendTaskQueue,
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, UpdateQueueRateLimit: update,
	})
	if err == nil {
		w.logger.Info("the rate of sends is set", "per_second", rps, "before", have)
	}
	return err
}

// same compares what has passed through a float32.
func same(a, b float64) bool { return a < 0 && b < 0 || math.Abs(a-b) < 1e-3 }
