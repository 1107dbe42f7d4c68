package monitor

import (
	"sync"
	"time"
)

// history is the last hour of what waits, in memory.
type history struct {
	mu     sync.Mutex
	points []point
}

// point is one moment of it.
type point struct {
	at      time.Time
	pending int64
	oldest  float64 // seconds
}

const (
	pointEvery = 30 * time.Second
	historyFor = time.Hour
)

func (h *history) add(s *State) {
	if !s.Database.OK || s.Outbox.Error != "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next := point{s.At, s.Outbox.Pending.Rows, s.Outbox.Oldest}
	if n := len(h.points); n > 0 && s.At.Sub(h.points[n-1].at) < pointEvery { // of each half minute the worst
		last := &h.points[n-1]
		last.pending, last.oldest = max(last.pending, next.pending), max(last.oldest, next.oldest)
		return
	}
	h.points = append(h.points, next)
	for len(h.points) > 0 && s.At.Sub(h.points[0].at) > historyFor {
		h.points = h.points[1:]
	}
}

func (h *history) last() []point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]point(nil), h.points...)
}
