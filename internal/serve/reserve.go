package serve

import (
	"context"
	"math"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/worker"
)

// shortestLook is the least time between two looks: SES allows one GetSendQuota a second.
const shortestLook = time.Second

// keepReserve stops the mails while there is a part of the day's quota left: it is for alerts, which may share the account and must
// be able to say why no mails go out. It says when to look again: often, where it may be soon.
func (w *quota) keepReserve(ctx context.Context, q activities.Quota) time.Duration {
	left := q.LeftToday()
	if left <= 0 {
		call, cancel := context.WithTimeout(ctx, rateCall)
		defer cancel()
		err := w.stops.Stop(call, worker.ScopeAll, activities.ClassDailyQuota, "what is left of the account's quota of the day is kept for alerts")
		if err != nil && ctx.Err() == nil {
			w.logger.Warn("the mails cannot be stopped; the reserve for alerts may be used up", "error", err)
			return min(rateAgain, w.every)
		}
		return w.every
	}
	if math.IsInf(left, 1) || q.PerSecond <= 0 {
		return w.every
	}
	half := time.Duration(left / q.PerSecond / 2 * float64(time.Second))
	return min(w.every, max(shortestLook, half))
}
