package worker

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/oncepost/oncepost/activities"
)

// fruitless reports whether the trial would last too long by the next look. What keeps its mails from being sent may be this
// process's own, as its network is: another may do better.
func (g *governor) fruitless() bool {
	if len(g.held) == 0 || time.Now().Add(g.cfg.Look).Before(g.giveUp) {
		return false
	}
	if g.shift == nil {
		return true
	}
	_, sent := g.shift.outcome()
	return !sent // else it resumes, as soon as that can be recorded
}

// resume ends the stops whose trial has succeeded. Where it cannot, it will at the next look.
func (g *governor) resume(ctx context.Context) {
	for _, scope := range g.held {
		call, cancel := context.WithTimeout(ctx, stopsCall)
		err := g.cfg.Stops.Resume(call, scope, g.holder)
		cancel()
		if g.looked(err); err != nil {
			return
		}
	}
}

// mayTry takes the trial of every stop, or of none; renews it where it has it.
func (g *governor) mayTry(ctx context.Context, stops []Stop) bool {
	for _, s := range stops {
		if s.By != "" || s.Left > 0 {
			g.release(ctx, g.held)
			g.held = nil
			return false
		}
	}
	had := len(g.held) > 0
	if !had && time.Now().Before(g.restUntil) {
		return false
	}
	began, until := time.Now(), time.Duration(math.MaxInt64)
	var held []string
	for _, s := range stops { // always in this order: two processes do not each wait for the other's
		call, cancel := context.WithTimeout(ctx, stopsCall)
		lasts, err := g.cfg.Stops.Try(call, s.Scope, g.holder)
		cancel()
		if g.looked(err); err != nil || lasts == 0 {
			g.release(ctx, append(held, g.held...))
			g.held = nil
			return false
		}
		held, until = append(held, s.Scope), min(until, lasts)
	}
	if !had {
		g.giveUp = began.Add(trialMost)
	}
	g.held, g.heldUntil = held, began.Add(until)
	return had || g.quotaIsBack(ctx, stops)
}

// quotaIsBack asks for the day's quota where that was the cause; there it, and nothing else, says when a trial makes sense.
func (g *governor) quotaIsBack(ctx context.Context, stops []Stop) bool {
	i := slices.IndexFunc(stops, func(s Stop) bool { return s.Class == activities.ClassDailyQuota })
	if i < 0 || g.account == nil {
		return true
	}
	call, cancel := context.WithTimeout(ctx, quotaCall)
	defer cancel()
	q, err := g.account.Quota(call)
	if err != nil {
		g.cfg.Logger.Warn("the quota of the day cannot be read; a mail will show whether it is back", "error", err)
		return true
	}
	if q.LeftToday() > 0 {
		return true
	}
	if err := g.record(ctx, stops[i]); err != nil {
		g.looked(err)
	}
	return false
}

func (g *governor) release(ctx context.Context, scopes []string) {
	for _, scope := range scopes {
		call, cancel := context.WithTimeout(ctx, stopsCall)
		if err := g.cfg.Stops.Release(call, scope, g.holder); err != nil {
			g.looked(err) // it ends by itself
		}
		cancel()
	}
}
