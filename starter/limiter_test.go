package starter

import (
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	// capacity is how many starts the server works on at once; more only queue.
	for _, c := range []struct {
		name     string
		capacity int
		service  time.Duration
		min, max int
	}{
		{"no limit in sight", 1 << 20, 500 * time.Millisecond, 1000, 1000},
		{"fast and wide", 1 << 20, time.Millisecond, 1000, 1000},
		{"a small server", 16, 10 * time.Millisecond, 8, 64},
		{"a middling server", 100, 10 * time.Millisecond, 64, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLimiter(1000, false)
			for range 400_000 {
				n := l.current()
				latency := c.service * time.Duration(max(1, (n+c.capacity-1)/c.capacity))
				l.observe(time.Now(), latency, n)
			}
			if got := l.current(); got < c.min || got > c.max {
				t.Errorf("limit %d, want %d to %d", got, c.min, c.max)
			}
		})
	}
}

func TestLimiterLearnsNothingWhenItIsNotReached(t *testing.T) {
	l := newLimiter(1000, false)
	before := l.current()
	for range 10_000 {
		l.observe(time.Now(), time.Millisecond, 1)
	}
	if got := l.current(); got != before {
		t.Errorf("limit went from %d to %d with one start in flight", before, got)
	}
}

func TestLimiterHalvesOnceForOneOverload(t *testing.T) {
	l := newLimiter(1000, false)
	began := time.Now()
	for range 50 { // all that were in flight come back refused
		l.overloaded(began)
	}
	if got := l.current(); got != firstLimit/2 {
		t.Errorf("limit %d, want %d", got, firstLimit/2)
	}
}
