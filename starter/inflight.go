package starter

import (
	"sync"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// inflight knows every row that this relay has read and that may still be in the table, so that a re-read of a shard's
// head starts nothing twice. It also holds the queues that starts are taken from.
type inflight struct {
	mu      sync.Mutex
	shards  [outbox.Shards]map[string]entry
	busy    [outbox.Shards]int // rows being started, or started and not yet gone
	lanes   [2]lane
	turn    int
	running int
	waiting int    // rows that wait before the next attempt
	epoch   uint64 // reads begun
	gone    []goneKey
	low     int           // the reader waits until a lane holds no more than this
	ready   chan struct{} // tells the reader that one does
}

type state uint8

const (
	isQueued   state = iota // waits for its turn to start
	isStarting              // a start is running
	isWaiting               // not before entry.until; the next read after that queues it
	isDone                  // started or to be moved: waits to be deleted
	isGone                  // deleted; a read that was under way may still show it
)

type entry struct {
	state    state
	attempts uint8 // failed ones in a row
	until    time.Time
	read     time.Time // first; zero once it waits for nothing but its delete
}

type goneKey struct {
	shard uint8
	id    string
	epoch uint64 // reads begun before the delete
}

// maxWaiting bounds the pauses that are remembered. A row beyond it is forgotten, and tried again when it is read again.
const maxWaiting = 200_000

func newInflight() *inflight {
	f := &inflight{low: -1, ready: make(chan struct{}, 1)}
	for i := range f.shards {
		f.shards[i] = map[string]entry{}
	}
	return f
}

// beginRead must be called before a page is asked for; admit takes its result.
func (f *inflight) beginRead() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch++
	return f.epoch
}

// admit queues the rows of a page that are new, or whose pause has passed, and returns how many of each shard.
func (f *inflight) admit(epoch uint64, rows []outbox.Row, owned *shardSet) (fresh [outbox.Shards]int) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetGone(epoch)
	for i := range rows {
		row := &rows[i]
		if !owned[row.Shard] {
			row.Payload, row.Headers = nil, nil
			continue // given up while the page was under way
		}
		e, known := f.shards[row.Shard][row.MessageID]
		switch {
		case !known:
			e.read = now
		case e.state == isWaiting && !now.Before(e.until):
			f.waiting--
		default:
			row.Payload, row.Headers = nil, nil // the page stays in memory for the rows that are new
			continue
		}
		e.state = isQueued
		f.shards[row.Shard][row.MessageID] = e
		f.lanes[laneOf(row.Shard)].push(row)
		fresh[row.Shard]++
	}
	return fresh
}

// forgetGone forgets deleted IDs, but only those deleted before the read with this epoch began: an older read can still
// show their rows, which would be started again. From then on the same ID is a new message.
func (f *inflight) forgetGone(epoch uint64) {
	n := 0
	for n < len(f.gone) && f.gone[n].epoch < epoch {
		delete(f.shards[f.gone[n].shard], f.gone[n].id)
		n++
	}
	f.gone = append(f.gone[:0], f.gone[n:]...)
}

// queued reports whether any row waits for its turn.
func (f *inflight) queued() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lanes[express].len()+f.lanes[others].len() > 0
}

// next takes the row to start next, or nil. Express rows go first, but every fourth start is the others' while they have
// any.
func (f *inflight) next(limit int) *outbox.Row {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running >= limit {
		return nil
	}
	lane := &f.lanes[express]
	if f.turn++; lane.len() == 0 || f.turn%othersShare == 0 && f.lanes[others].len() > 0 {
		lane = &f.lanes[others]
	}
	row := lane.pop()
	if row == nil {
		return nil
	}
	if lane.len() == f.low {
		select {
		case f.ready <- struct{}{}:
		default: // the reader has been told
		}
	}
	e := f.shards[row.Shard][row.MessageID]
	e.state = isStarting
	f.set(row.Key, e)
	f.busy[row.Shard]++
	f.running++
	return row
}

func (f *inflight) set(k outbox.Key, e entry) { f.shards[k.Shard][k.MessageID] = e }

// done marks a row whose start has ended for good; it waits for its delete now.
func (f *inflight) done(k outbox.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	f.set(k, entry{state: isDone})
}

// retry lets a row wait before its next attempt: base doubled per failed attempt, at most longest.
func (f *inflight) retry(k outbox.Key, base, longest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	f.busy[k.Shard]--
	if f.waiting >= maxWaiting {
		delete(f.shards[k.Shard], k.MessageID)
		return
	}
	f.waiting++
	e := f.shards[k.Shard][k.MessageID]
	pause := min(base<<min(e.attempts, 16), longest)
	f.set(k, entry{state: isWaiting, attempts: min(e.attempts, 30) + 1, until: time.Now().Add(jitter(pause)), read: e.read})
}

// forget drops a row that was being started: it is gone from the table, or it will be read again.
func (f *inflight) forget(k outbox.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	f.busy[k.Shard]--
	delete(f.shards[k.Shard], k.MessageID)
}

// deleted marks rows as gone from the table.
func (f *inflight) deleted(keys []outbox.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		f.busy[k.Shard]--
		f.set(k, entry{state: isGone})
		f.gone = append(f.gone, goneKey{k.Shard, k.MessageID, f.epoch})
	}
}

// wakeWaiting ends the pause of every waiting row, when an outage is over.
func (f *inflight) wakeWaiting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, shard := range f.shards {
		for id, e := range shard {
			if e.state == isWaiting {
				e.until = time.Now()
				shard[id] = e
			}
		}
	}
}

// dropQueued forgets the rows that have not begun to start, when the relay no longer owns their shards.
func (f *inflight) dropQueued() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.lanes {
		for row := f.lanes[i].pop(); row != nil; row = f.lanes[i].pop() {
			delete(f.shards[row.Shard], row.MessageID)
		}
	}
}

// forgetWaiting forgets rows whose pause ended longer than age ago and that no read has shown since: they are gone, or
// another relay's.
func (f *inflight) forgetWaiting(age time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, shard := range f.shards {
		for id, e := range shard {
			if e.state == isWaiting && time.Since(e.until) > age {
				f.waiting--
				delete(shard, id)
			}
		}
	}
}

// leave drops a shard's rows that are not being started, and reports whether nothing of it is in flight any more, but for
// the rows that somebody's open transaction keeps from being deleted.
func (f *inflight) leave(shard uint8, locked int) (drained bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, e := range f.shards[shard] {
		if e.state == isWaiting {
			f.waiting--
			delete(f.shards[shard], id)
		}
	}
	f.lanes[laneOf(shard)].remove(func(row *outbox.Row) bool {
		if row.Shard == shard {
			delete(f.shards[shard], row.MessageID)
		}
		return row.Shard == shard
	})
	return f.busy[shard] <= locked
}

// room is how many more rows each lane may take, given that a lane holds at most size. A later fall of a lane to half of
// size is told on ready.
func (f *inflight) room(size int) (rooms [2]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.low = size / 2
	for i := range f.lanes {
		rooms[i] = max(0, size-f.lanes[i].len())
	}
	return rooms
}

// goneAfter: a row that no read has shown so long after its pause is gone from the table, or another relay's.
const goneAfter = 5 * time.Second

// longest is for how long a row has been known that has not started.
func (f *inflight) longest(now time.Time) (longest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, shard := range f.shards {
		for _, e := range shard {
			gone := e.state == isWaiting && now.Sub(e.until) > goneAfter // or it would have been read again
			if !e.read.IsZero() && !gone {
				longest = max(longest, now.Sub(e.read))
			}
		}
	}
	return longest
}

func (f *inflight) starting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

// unfinished is how many rows are being started, or have nothing left but their delete.
func (f *inflight) unfinished() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, busy := range f.busy {
		n += busy
	}
	return n
}
