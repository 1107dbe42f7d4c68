package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// guardAfter is when the server is told how long the session may be silent.
	guardAfter = 100 * time.Millisecond
	// looks is how often within Config.Timeout the session is looked at.
	looks = 5
)

// keep looks after the session until it is closed or lost.
func (h *hold) keep(ctx context.Context) {
	defer h.keeper.Done()
	silent := time.AfterFunc(h.l.timeout*2/3-guardAfter, func() { h.cancel(errSilent) })
	defer silent.Stop()
	ticks := time.NewTicker(h.l.timeout / looks)
	defer ticks.Stop()
	for h.look(ctx) { // once the first statement is over
		silent.Stop()
		select {
		case <-h.closed:
			return
		case <-ticks.C:
		}
	}
}

var errSilent = errors.New("locks: the server has not answered in time")

// rest ends the keeper, and waits until a statement of its is over, but not for long.
func (h *hold) rest() {
	close(h.closed)
	defer h.hurry()
	if h.first.Stop() {
		h.keeper.Done() // it has not begun, and never will
		return
	}
	late := time.AfterFunc(cleanUp, h.hurry)
	defer late.Stop()
	h.keeper.Wait()
}

// look sees whether the session still holds its locks.
func (h *hold) look(ctx context.Context) bool {
	h.mu.Lock()
	defer h.unlock()
	if !h.guarded && h.timeout > 0 { // else no lock was asked for yet
		if err := h.set(ctx, h.l.timeout, int(h.l.timeout/time.Second)); err != nil {
			h.lose(PointConnectionGone, err)
			return false
		}
		h.guarded = true
	}
	columns, holders := []string{"CONNECTION_ID()"}, make([]sql.NullInt64, len(h.held)+1)
	into := []any{&holders[0]}
	for i, lk := range h.held {
		columns, into = append(columns, "IS_USED_LOCK('"+lk.name+"')"), append(into, &holders[i+1])
	}
	if err := h.ask(ctx, h.l.timeout, "SELECT "+strings.Join(columns, ", "), into...); err != nil {
		h.lose(PointConnectionGone, err)
		return false
	}
	for i, lk := range h.held {
		if id := holders[i+1].Int64; id != h.s.id || holders[0].Int64 != h.s.id {
			h.lose(PointLockLost, fmt.Errorf("%q is held by session %d, and this was session %d and is %d", lk.key, id, h.s.id, holders[0].Int64))
			return false
		}
	}
	return true
}

// set sets the session's wait_timeout.
func (h *hold) set(ctx context.Context, most time.Duration, seconds int) error {
	return h.within(ctx, most, func(ctx context.Context) error { return h.s.setTimeout(ctx, seconds) })
}
