package starter

import "time"

// pace finds how long to pause between reads. While rows come, a read takes at most about a sixth of the time; when
// none come the pause grows to its bound.
type pace struct {
	longest time.Duration
	current time.Duration
	empty   int // reads in a row that found nothing
	done    func() int64
	seen    int64
	at      time.Time
	rate    float64 // rows done per second, smoothed
}

const (
	pauseShare    = 5 // a pause is so many times the read before it
	shortestPause = 3 * time.Millisecond
	longestBusy   = 8 * time.Millisecond // the longest pause while rows come
	emptyToSlow   = 4                    // empty reads before the pause grows

	minPage     = 256
	pageSeconds = 0.05 // a page holds what is started in so long
	rateWindow  = 100 * time.Millisecond
	firstWindow = 20 * time.Millisecond // while no rate is known
)

// after takes a read that found fresh new rows.
func (p *pace) after(fresh int, took time.Duration) {
	busy := min(max(pauseShare*took, shortestPause), longestBusy)
	if fresh > 0 {
		p.empty, p.current = 0, busy
		return
	}
	if p.empty++; p.empty > emptyToSlow {
		p.current = min(max(p.current*3/2, busy), p.longest)
	}
	p.current = min(max(p.current, shortestPause), p.longest)
}

// hurry makes the next reads follow closely: rows are known to have come.
func (p *pace) hurry() { p.empty, p.current = 0, shortestPause }

func (p *pace) pause() time.Duration { return min(p.current, p.longest) }

// startRate is how many rows a second have been started lately.
func (p *pace) startRate() float64 {
	now := time.Now()
	d := now.Sub(p.at)
	if d < firstWindow || d < rateWindow && p.rate > 0 {
		return p.rate
	}
	n := p.done()
	rate := float64(n-p.seen) / d.Seconds()
	if p.rate > 0 {
		rate = (p.rate + rate) / 2
	}
	p.rate, p.seen, p.at = rate, n, now
	return p.rate
}
