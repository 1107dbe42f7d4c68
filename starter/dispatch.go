package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// kick wakes a worker when rows wait. The worker wakes the next one when it has found a row, and so on up to the limit; then
// each goes on with the next row by itself. So there are as many workers as starts take time, and no more. But while the
// gate is closed the rows of a trial set out together.
func (r *Relay) kick() {
	for _, row := range r.trial() {
		r.workers.Go(func() { r.work(row) })
	}
	if r.gate.isOpen() && r.rows.queued() && r.waking.CompareAndSwap(false, true) {
		r.workers.Go(r.wake)
	}
}

// trial takes the rows that may be tried while the gate is closed, all of them before the first sets out: one that fails at
// once must not end the trial for the others.
func (r *Relay) trial() (rows []*outbox.Row) {
	for !r.gate.isOpen() {
		row := r.next()
		if row == nil {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *Relay) wake() {
	r.waking.Store(false) // before it looks for a row: whoever queues one later wakes another worker
	if row := r.next(); row != nil {
		r.kick()
		r.work(row)
	}
}

func (r *Relay) work(row *outbox.Row) {
	for row != nil {
		r.start(row)
		row = r.next()
	}
}

// next takes a row to start, if the gate, the limit and a stop under way allow one.
func (r *Relay) next() *outbox.Row {
	if r.hard.Err() != nil || r.stopping.Load() || !r.rows.queued() || !r.gate.allow(time.Now()) {
		return nil
	}
	row := r.rows.next(r.limit.current())
	if row == nil {
		r.gate.returnTrial()
	}
	return row
}

// start tries row once, with no transaction and no connection held.
func (r *Relay) start(row *outbox.Row) {
	release, err := r.load(row)
	if err != nil {
		r.notLoaded(row, err)
		return
	}
	defer release()
	began := time.Now()
	o := r.starter.Start(r.deadline.from(r.hard, began), row, row.Delay(began))
	if o.settled() {
		r.limit.observe(began, time.Since(began), r.rows.starting())
	}
	r.settle(row, began, o)
}

// load reads a large row's payload, within the bound on bytes in memory. The connection goes back before the start.
func (r *Relay) load(row *outbox.Row) (release func(), err error) {
	if !row.Large() {
		return func() {}, nil
	}
	size := min(int64(row.Size), r.cfg.MaxBytes)
	if err := r.large.Acquire(r.hard, size); err != nil {
		return nil, err
	}
	if err := r.readLarge(row); err != nil {
		r.large.Release(size)
		return nil, err
	}
	return func() {
		row.Payload, row.Headers = nil, nil
		r.large.Release(size)
	}, nil
}

// maxLoads bounds the connections, beside the sessions, that read large rows.
const maxLoads = 8

func (r *Relay) readLarge(row *outbox.Row) error {
	if err := r.loads.Acquire(r.hard, 1); err != nil {
		return err
	}
	defer r.loads.Release(1)
	ctx, cancel := context.WithTimeout(r.hard, r.cfg.callTimeout)
	defer cancel()
	return r.table.Load(ctx, r.db, row)
}

// notLoaded lets a row be read again: the database failed, and the term will end by itself, or the row is gone.
func (r *Relay) notLoaded(row *outbox.Row, err error) {
	r.gate.returnTrial()
	if errors.Is(err, outbox.ErrGone) {
		r.gate.acquitted(row.MessageID)
		r.rows.forget(row.Key)
		return
	}
	r.cfg.Logger.Warn("large message not read, will be tried again", "message_id", row.MessageID, "shard", row.Shard, "error", err)
	r.rows.retry(row.Key, r.cfg.minBackoff, r.cfg.maxBackoff)
}

// settle does with row what its start came to.
func (r *Relay) settle(row *outbox.Row, began time.Time, o Outcome) {
	switch o.Class {
	case Started, Duplicate:
		r.settled(row, began, o)
	case Reused:
		r.rows.done(row.Key)
		r.finds.fail(failing{key: row.Key, reason: outbox.ReasonIDReused, detail: o.Reason})
		r.answered(row, began)
	case Never:
		if o.Certain {
			r.gate.returnTrial()
			r.rows.done(row.Key)
			r.finds.fail(failing{key: row.Key, reason: outbox.ReasonNeverStarts, detail: o.Reason})
			return
		}
		guilty, report := r.gate.refused(row.MessageID, o.Reason)
		r.report(report)
		if guilty {
			r.rows.done(row.Key)
			r.finds.fail(failing{key: row.Key, reason: outbox.ReasonNeverStarts, detail: o.Reason})
			return
		}
		r.again(row, began, o, r.cfg.suspicion)
	case Misconfigured, Away:
		r.report(r.gate.failed(o))
		r.again(row, began, o, r.cfg.minBackoff)
	default:
		panic(fmt.Sprintf("starter: outcome %v", o.Class))
	}
}

func (r *Relay) settled(row *outbox.Row, began time.Time, o Outcome) {
	if o.Class == Duplicate {
		r.stats.duplicates.Add(1)
	} else {
		r.stats.started.Add(1)
	}
	r.health.started.now(r.health.made)
	row.Payload, row.Headers = nil, nil
	r.rows.done(row.Key)
	r.finds.add(row.Key)
	r.answered(row, began)
}

// answered tells the gate that Temporal works.
func (r *Relay) answered(row *outbox.Row, began time.Time) {
	over, report := r.gate.succeeded(began, row.MessageID)
	r.report(report)
	if over { // what was read before an outage may be gone or changed since: it is read again
		r.rows.dropQueued()
		r.rows.wakeWaiting()
	}
	if len(report) > 0 {
		r.kick()
	}
}

func (r *Relay) again(row *outbox.Row, began time.Time, o Outcome, base time.Duration) {
	r.stats.retried.Add(1)
	r.cfg.Logger.Debug("start will be tried again", "message_id", row.MessageID, "event_type", row.EventType,
		"shard", row.Shard, "class", o.Class.String(), "reason", o.Reason)
	if o.Overload {
		r.limit.overloaded(began)
	}
	row.Payload, row.Headers = nil, nil
	r.rows.retry(row.Key, base, r.cfg.maxBackoff)
}

func (r *Relay) report(conditions []Condition) {
	for _, c := range conditions {
		r.cfg.Report(c)
	}
}

// guard keeps the namespace verified, and probes while the gate is shut.
func (r *Relay) guard(ctx context.Context) {
	rebind := r.cfg.Rebind
	backoff := newBackoff(r.cfg.minBackoff, trialPause)
	for ctx.Err() == nil {
		if wait := r.gate.due(time.Now()); wait != 0 {
			r.gate.await(ctx, wait)
			continue
		}
		o, err := r.verify(ctx, rebind)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.databaseFailed(byBinding, err)
			sleep(ctx, backoff.next())
			continue
		}
		backoff.reset()
		r.databaseWorks(byBinding)
		if o.Class == Started {
			rebind = false
		}
		r.report(r.gate.verifiedAs(o))
		r.kick()
	}
}
