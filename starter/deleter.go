package starter

import (
	"context"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// deleter deletes rows that have started, in few large batches: a late delete costs nothing but a refused second start.
type deleter struct {
	relay  *Relay
	rows   *outbox.Deleter
	server outbox.ServerState
	used   time.Time // when the session was last
}

func (d *deleter) run(ctx context.Context) error {
	cfg := d.relay.cfg
	for {
		keys, fails, wait := d.relay.finds.take(cfg.MaxDelete, cfg.linger)
		if err := d.move(ctx, fails); err != nil {
			d.relay.finds.release(keys)
			return err
		}
		if len(keys)+len(fails) > 0 {
			d.used = time.Now()
		}
		if len(keys) > 0 {
			if err := d.delete(ctx, keys); err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := d.keepAlive(ctx); err != nil {
			return err
		}
		d.await(ctx, wait)
	}
}

// keepAlive uses the session before the server ends it for its idleness, and looks who answers.
func (d *deleter) keepAlive(ctx context.Context) error {
	if time.Since(d.used) < d.relay.cfg.sessionTimeout/3 {
		return nil
	}
	d.used = time.Now()
	call, cancel := context.WithTimeout(ctx, d.relay.cfg.callTimeout)
	defer cancel()
	state, err := d.rows.State(call)
	if ctx.Err() != nil {
		return nil // a stop is no error
	}
	if err != nil {
		return fmt.Errorf("keep a session alive: %w", err)
	}
	return sameServer(d.server, state)
}

func (d *deleter) await(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-d.relay.finds.wake:
	}
}

func (d *deleter) delete(ctx context.Context, keys []outbox.Key) error {
	ctx, cancel := context.WithTimeout(ctx, d.relay.cfg.callTimeout)
	defer cancel()
	result, err := d.rows.Delete(ctx, keys)
	if err == nil && result.Server != (outbox.ServerState{}) { // something was left: is this the server that was read?
		err = sameServer(d.server, result.Server)
	}
	if err != nil {
		d.relay.finds.release(keys)
		return fmt.Errorf("delete rows: %w", err)
	}
	gone := without(keys, result.Locked)
	d.relay.rows.deleted(gone)
	d.relay.stats.deleted.Add(int64(len(gone)))
	d.relay.finds.held(result.Locked)
	return nil
}

// without returns keys less those in some.
func without(keys, some []outbox.Key) []outbox.Key {
	if len(some) == 0 {
		return keys
	}
	out := make(map[outbox.Key]bool, len(some))
	for _, k := range some {
		out[k] = true
	}
	var left []outbox.Key
	for _, k := range keys {
		if !out[k] {
			left = append(left, k)
		}
	}
	return left
}

// move moves messages to outbox_failed, and says so.
func (d *deleter) move(ctx context.Context, fails []failing) error {
	for i, f := range fails {
		call, cancel := context.WithTimeout(ctx, d.relay.cfg.callTimeout)
		moved, err := d.rows.MoveToFailed(call, f.key, f.reason, f.detail)
		cancel()
		there := false
		if err == nil && !moved { // gone, or held by a producer
			there, err = d.there(ctx, f.key)
		}
		if err != nil {
			if !d.works(ctx) {
				fails[i].unsure = true
				d.relay.finds.fail(fails[i:]...)
				return fmt.Errorf("move %s to outbox_failed: %w", f.key.MessageID, err)
			}
			d.notMoved(f, err)
			continue
		}
		if there {
			f.after = time.Now().Add(lockedPause)
			d.relay.finds.fail(f)
			continue
		}
		d.relay.rows.deleted([]outbox.Key{f.key})
		if !moved {
			d.canMove("the message is gone")
		}
		if moved || f.unsure { // gone: the move whose answer was lost did come to its end
			d.report(f)
		}
	}
	return nil
}

func (d *deleter) there(ctx context.Context, key outbox.Key) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, d.relay.cfg.callTimeout)
	defer cancel()
	return d.rows.There(ctx, key)
}

// works reports whether the session is in order, so that an error lies in the statement: outbox_failed is not oncepost's, or a
// right is missing.
func (d *deleter) works(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, d.relay.cfg.callTimeout)
	defer cancel()
	state, err := d.rows.State(ctx)
	return err == nil && sameServer(d.server, state) == nil
}

// notMoved leaves a message where it is, so that the others go on.
func (d *deleter) notMoved(f failing, err error) {
	f.after = time.Now().Add(d.relay.cfg.maxBackoff)
	d.relay.finds.fail(f)
	if d.relay.cannotMove.CompareAndSwap(false, true) {
		d.relay.cfg.Report(Condition{
			Name: CondNotMoved, Active: true, MessageID: f.key.MessageID,
			Detail: "a message that can never start cannot be moved to outbox_failed: " + err.Error() +
				". It stays in outbox_messages; check the table and the relay's rights to it",
		})
	}
}

func (d *deleter) canMove(detail string) {
	if d.relay.cannotMove.CompareAndSwap(true, false) {
		d.relay.cfg.Report(Condition{Name: CondNotMoved, Detail: detail})
	}
}

func (d *deleter) report(f failing) {
	d.relay.stats.failed.Add(1)
	d.canMove("messages can be moved to outbox_failed again")
	name := CondFailed
	if f.reason == outbox.ReasonIDReused {
		name = CondIDReused
	}
	d.relay.cfg.Report(Condition{
		Name: name, Active: true, MessageID: f.key.MessageID,
		Detail: "the message is in outbox_failed now: " + f.detail,
	})
}
