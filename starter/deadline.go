package starter

import (
	"context"
	"sync"
	"time"
)

// deadline bounds starts. To make one costs as much as all else that a start costs the relay, so that starts which begin
// within a short while share one; the last of them has so much less time.
type deadline struct {
	timeout time.Duration

	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // the one shared now
	made time.Time
}

const deadlineShared = 100 * time.Millisecond

// from returns the context of a start that begins now. It ends with parent, which must always be the same.
func (d *deadline) from(parent context.Context, now time.Time) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || now.Sub(d.made) > min(deadlineShared, d.timeout/10) {
		ctx, end := context.WithTimeout(parent, d.timeout)
		context.AfterFunc(ctx, end) // by itself or with its parent only: starts under it may be running
		d.ctx, d.made = ctx, now
	}
	return d.ctx
}
