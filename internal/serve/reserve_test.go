package serve

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/worker"
)

// account has a quota, and counts the stops.
type account struct {
	worker.Stops
	q     activities.Quota
	err   error
	stops int
}

func (a *account) Quota(context.Context) (activities.Quota, error) { return a.q, a.err }
func (*account) Credentials(context.Context) string                { return "" }

func (a *account) Stop(_ context.Context, scope, class, _ string) error {
	if scope == worker.ScopeAll && class == activities.ClassDailyQuota {
		a.stops++
	}
	return nil
}

// The mails stop before the quota of the day is used up: the rest is for alerts. The nearer that is, the more often it is looked at.
func TestAReserveIsKeptForAlerts(t *testing.T) {
	for _, c := range []struct {
		name  string
		a     account
		stops int
		pause time.Duration
	}{
		{"much is left", account{q: activities.Quota{PerSecond: 10, PerDay: 10000, SentLastDay: 100}}, 0, time.Minute},
		{"little is left", account{q: activities.Quota{PerSecond: 10, PerDay: 10000, SentLastDay: 9850}}, 0, 5 * time.Second},
		{"very little is left", account{q: activities.Quota{PerSecond: 10, PerDay: 10000, SentLastDay: 9949}}, 0, time.Second},
		{"the reserve is left", account{q: activities.Quota{PerSecond: 10, PerDay: 10000, SentLastDay: 9950}}, 1, time.Minute},
		{"no limit", account{q: activities.Quota{PerSecond: 10, PerDay: -1, SentLastDay: 9950}}, 0, time.Minute},
		{"it cannot be read", account{err: errors.New("denied")}, 0, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quota{account: &c.a, stops: &c.a, tally: &Tally{}, logger: slog.New(slog.DiscardHandler), every: time.Minute}
			pause := w.every
			if q, read := w.read(t.Context()); read {
				pause = w.keepReserve(t.Context(), q)
			}
			if pause != c.pause || c.a.stops != c.stops {
				t.Errorf("%d stops, looks again in %s", c.a.stops, pause)
			}
		})
	}
}
