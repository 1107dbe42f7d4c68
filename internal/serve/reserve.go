package serve

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/worker"
)

// reserve stops the mails while there is a part of the day's quota left: it is for alerts, which may share the account and must
// be able to say why no mails go out.
type reserve struct {
	account worker.Account
	stops   worker.Stops
	logger  *slog.Logger
	every   time.Duration // at most so long between two looks at the quota
}

// shortestLook is the least time between two looks: SES allows one GetSendQuota a second.
const shortestLook = time.Second

func (r *reserve) run(ctx context.Context) {
	for pause := time.Duration(0); ; {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = r.look(ctx)
	}
}

// look stops the mails where only the reserve is left, and says when to look again: often, where it may be soon.
func (r *reserve) look(ctx context.Context) time.Duration {
	call, cancel := context.WithTimeout(ctx, rateCall)
	defer cancel()
	q, err := r.account.Quota(call)
	if err != nil {
		return r.every // the rate's own look says so; SES's refusal of a mail stops them then
	}
	left := q.LeftToday()
	if left <= 0 {
		err := r.stops.Stop(call, worker.ScopeAll, activities.ClassDailyQuota, "what is left of the account's quota of the day is kept for alerts")
		if err != nil && ctx.Err() == nil {
			r.logger.Warn("the mails cannot be stopped; the reserve for alerts may be used up", "error", err)
			return min(rateAgain, r.every)
		}
		return r.every
	}
	if math.IsInf(left, 1) || q.PerSecond <= 0 {
		return r.every
	}
	half := time.Duration(left / q.PerSecond / 2 * float64(time.Second))
	return min(r.every, max(shortestLook, half))
}
