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

// rater keeps the rate limit of the sends' task queue, on the server, as it should be. Any worker may, and each does: they have
// the same account.
type rater struct {
	client    client.Client
	namespace string
	account   worker.Account // nil where the Mailer tells nothing
	rate      Rate
	logger    *slog.Logger
	every     time.Duration

	silent bool // it has been said that the quota cannot be read
}

func (r *rater) run(ctx context.Context) {
	for {
		pause := r.every
		if rps, known := r.wanted(ctx); known {
			if err := r.apply(ctx, rps); err != nil && ctx.Err() == nil {
				r.logger.Warn("the rate of sends cannot be set, will try again", "error", err, "after", rateAgain)
				pause = rateAgain
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// wanted is the rate as it should be; negative is no limit. Where it cannot be known the limit stays as it is.
func (r *rater) wanted(ctx context.Context) (rps float64, known bool) {
	if f := r.rate.Fixed; f != nil {
		if *f == 0 {
			return -1, true
		}
		return *f, true
	}
	if r.account == nil {
		return 0, false
	}
	call, cancel := context.WithTimeout(ctx, rateCall)
	defer cancel()
	q, err := r.account.Quota(call)
	if err != nil {
		if !r.silent && ctx.Err() == nil {
			r.logger.Warn("the account's sending rate cannot be read (the right ses:GetSendQuota is needed); going on without: give --send-rate", "error", err)
			r.silent = true
		}
		return 0, false
	}
	r.silent = false
	if q.PerSecond <= 0 {
		return -1, true
	}
	return q.PerSecond * r.rate.Share, true
}

// apply sets the limit where it is another.
func (r *rater) apply(ctx context.Context, rps float64) error {
	ctx, cancel := context.WithTimeout(ctx, rateCall)
	defer cancel()
	service := r.client.WorkflowService()
	now, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: r.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: schemas.SendTaskQueue},
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
		Namespace: r.namespace, Identity: "oncepost", TaskQueue: schemas.SendTaskQueue,
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, UpdateQueueRateLimit: update,
	})
	if err == nil {
		r.logger.Info("the rate of sends is set", "per_second", rps, "before", have)
	}
	return err
}

// same compares what has passed through a float32.
func same(a, b float64) bool { return a < 0 && b < 0 || math.Abs(a-b) < 1e-3 }
