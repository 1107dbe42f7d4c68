package alerts

import (
	"crypto/sha256"
	"sync"
	"time"
)

// repeats remembers which alerts have left, so that the same one is counted.
type repeats struct {
	mu   sync.Mutex
	max  int
	seen map[[32]byte]*entry // by the key's hash: keys may be of any length
}

// entry is an alert that has left, or is about to.
type entry struct {
	done   chan struct{} // closed when it has been sent, or not; then err stands
	err    error
	before counted // since the last one that has reached somebody

	sending bool
	until   time.Time // when the next one leaves
	later   counted   // after it
}

// counted are alerts that did not leave.
type counted struct {
	n     int
	since time.Time
}

func (c *counted) add(n int, at time.Time) {
	if n > 0 && (c.n == 0 || at.Before(c.since)) {
		c.since = at
	}
	c.n += n
}

func newRepeats(limit int) *repeats { return &repeats{max: limit, seen: map[[32]byte]*entry{}} }

// begin reports whether the caller is to send the alert, and must call end; otherwise it was counted.
func (r *repeats) begin(key string, now time.Time) (first bool, e *entry) {
	hash := sha256.Sum256([]byte(key))
	r.mu.Lock()
	defer r.mu.Unlock()
	e = r.seen[hash]
	if e != nil && (e.sending || now.Before(e.until)) {
		e.later.add(1, now)
		return false, e
	}
	next := &entry{done: make(chan struct{}), sending: true, until: now}
	if e != nil {
		next.before = e.later
	}
	r.seen[hash] = next
	if len(r.seen) > r.max {
		r.forgetOldest(next)
	}
	return true, next
}

// end lets the next one leave from until on. What has reached nobody is told by the next one, this one included.
func (r *repeats) end(e *entry, until time.Time, err error, reached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !reached {
		e.later.add(1, e.until) // until now, when it began
		e.later.add(e.before.n, e.before.since)
	}
	e.sending, e.until, e.err = false, until, err
	close(e.done)
}

// forgetOldest keeps what is being sent: that is bounded by who sends.
func (r *repeats) forgetOldest(but *entry) {
	var oldest [32]byte
	var found *entry
	for hash, e := range r.seen {
		if e != but && !e.sending && (found == nil || e.until.Before(found.until)) {
			oldest, found = hash, e
		}
	}
	if found != nil {
		delete(r.seen, oldest)
	}
}
