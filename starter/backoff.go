package starter

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles from first to last, each pause shortened at random by up to a third, so that relays which failed
// together do not come back together.
type backoff struct {
	first, last, current time.Duration
}

func newBackoff(first, last time.Duration) *backoff { return &backoff{first: first, last: last} }

func (b *backoff) reset() { b.current = 0 }

func (b *backoff) next() time.Duration {
	b.current = min(max(2*b.current, b.first), b.last)
	return jitter(b.current)
}

func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/3+1)) //nolint:gosec // spreads load; no secret depends on it
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
