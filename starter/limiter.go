package starter

import (
	"sync"
	"time"
)

// limiter finds how many starts may run at once, by measuring. It doubles the limit while that makes more starts a
// second, and halves it while that loses none: more starts in flight than a server can work on only make each slower.
//
// A step is judged by the mean latency of starts that began after it. With n in flight and a mean latency of r, n/r are
// done a second (Little's law), so that no wall-clock window is needed and slow starts are judged like fast ones.
type limiter struct {
	mu      sync.Mutex
	max     int
	fixed   bool
	limit   int
	step    step
	since   time.Time // samples of starts that began before do not count
	count   int
	total   time.Duration
	full    bool    // the limit was reached since the step began
	rate    float64 // starts a second before this step
	settled int     // judgements since the limit last moved
}

type step uint8

const (
	holding step = iota
	growing
	shrinking
)

const (
	firstLimit = 64
	minLimit   = 8
	minSamples = 32
	worthMore  = 1.25 // doubling must gain this factor to be kept
	costsLess  = 0.95 // halving is kept when this share of the rate is left
	probeEvery = 16   // judgements between two tries at a settled limit
)

func newLimiter(most int, fixed bool) *limiter {
	if fixed {
		return &limiter{max: most, limit: most, fixed: true}
	}
	return &limiter{max: most, limit: min(firstLimit, most), step: holding, settled: probeEvery}
}

func (l *limiter) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// observe takes the latency of a start that has succeeded. running is how many are in flight with it.
func (l *limiter) observe(began time.Time, latency time.Duration, running int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fixed || began.Before(l.since) {
		return
	}
	l.full = l.full || running >= l.limit
	l.count++
	l.total += latency
	if l.count >= max(minSamples, l.limit/2) {
		l.judge()
	}
}

// overloaded halves the limit at once: the server itself said, to a start begun at that time, that it is too much.
func (l *limiter) overloaded(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fixed || began.Before(l.since) {
		return // halved for that already
	}
	l.move(max(min(minLimit, l.max), l.limit/2), holding)
	l.settled = 0
}

// judge ends a step. Without the limit having been reached there is nothing to learn.
func (l *limiter) judge() {
	rate := float64(l.limit) * float64(l.count) / max(l.total.Seconds(), 1e-9)
	if !l.full {
		l.move(l.limit, l.step)
		return
	}
	switch {
	case l.step == growing && rate < worthMore*l.rate:
		l.move(l.limit/2, holding)
	case l.step == growing:
		l.rate = rate
		l.grow()
	case l.step == shrinking && rate < costsLess*l.rate:
		l.move(min(2*l.limit, l.max), holding)
	default:
		l.hold(rate)
	}
}

// hold stays at the limit, and tries a larger and a smaller one in turn every so often.
func (l *limiter) hold(rate float64) {
	l.rate = rate
	l.settled++
	switch {
	case l.settled >= 2*probeEvery && l.limit > minLimit:
		l.settled = 0
		l.move(max(minLimit, l.limit/2), shrinking)
	case l.settled == probeEvery+1:
		l.grow()
	default:
		l.move(l.limit, holding)
	}
}

func (l *limiter) grow() {
	if l.limit >= l.max {
		l.move(l.limit, holding)
		return
	}
	l.move(min(2*l.limit, l.max), growing)
}

func (l *limiter) move(limit int, s step) {
	l.limit, l.step = limit, s
	l.since, l.count, l.total, l.full = time.Now(), 0, 0, false
}
