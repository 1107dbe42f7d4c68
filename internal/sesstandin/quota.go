package sesstandin

import (
	"math"
	"sync"
	"time"
)

const (
	day           = 24 * time.Hour
	longestWindow = time.Minute // of the slowest rate, minRate
)

// limit is one enforced quota; a zero field enforces nothing.
type limit struct {
	perSecond float64
	perDay    float64
	exhausted bool // as if the daily quota were already used up
}

// window returns how many recipients fit into how long. A rate below one per second is one
// recipient in a longer window.
func (l limit) window() (float64, time.Duration) {
	if l.perSecond < 1 {
		return 1, time.Duration(float64(time.Second) / l.perSecond)
	}
	return math.Floor(l.perSecond), time.Second
}

// sending counts what the account has sent.
type sending struct {
	mu      sync.Mutex
	recent  []sent            // of the last minute, oldest first
	minutes map[int64]float64 // recipients by Unix minute, of the last 24 hours
}

type sent struct {
	at time.Time
	n  float64
}

func newSending() *sending { return &sending{minutes: map[int64]float64{}} }

// admit counts n recipients unless a limit forbids it; then it returns the position of that
// limit and the refusal. Check and count are one step: concurrent requests cannot pass together.
func (s *sending) admit(now time.Time, n float64, limits []limit) (int, *APIError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	for i, l := range limits {
		if l.exhausted || l.perDay > 0 && s.lastDay()+n > l.perDay {
			return i, throttled("Daily message quota exceeded.")
		}
		if l.perSecond > 0 && s.rateExceeded(now, n, l) {
			return i, throttled("Maximum sending rate exceeded.")
		}
	}
	s.count(now, n)
	return 0, nil
}

// restore counts a mail that was accepted before a restart.
func (s *sending) restore(at time.Time, n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(at, n)
}

// sentLastDay returns the recipients of the last 24 hours, to the minute.
func (s *sending) sentLastDay(now time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	return s.lastDay()
}

// rateExceeded lets a mail with more recipients than the rate pass when nothing went before it:
// otherwise it could never go.
func (s *sending) rateExceeded(now time.Time, n float64, l limit) bool {
	most, window := l.window()
	var within float64
	for i := len(s.recent) - 1; i >= 0 && now.Sub(s.recent[i].at) < window; i-- {
		within += s.recent[i].n
	}
	return within > 0 && within+n > most
}

func (s *sending) count(at time.Time, n float64) {
	s.recent = append(s.recent, sent{at, n})
	s.minutes[at.Unix()/60] += n
}

func (s *sending) lastDay() float64 {
	var total float64
	for _, n := range s.minutes {
		total += n
	}
	return total
}

func (s *sending) prune(now time.Time) {
	old := 0
	for old < len(s.recent) && now.Sub(s.recent[old].at) > longestWindow {
		old++
	}
	s.recent = s.recent[old:]
	oldest := now.Add(-day).Unix() / 60
	for minute := range s.minutes {
		if minute <= oldest {
			delete(s.minutes, minute)
		}
	}
}
