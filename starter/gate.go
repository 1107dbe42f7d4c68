package starter

import (
	"context"
	"sync"
	"time"
)

// gate decides whether starts may be tried at all. It is open while they succeed. When they fail for a reason that no
// message is to blame for, it closes; then the namespace is verified again and one row is the trial, at growing
// intervals, until one succeeds.
type gate struct {
	mu       sync.Mutex
	cfg      Config
	open     bool
	size     int // of the next trial
	trials   int // closed, but the namespace answers: so many starts may be tried
	trying   int // trials that are running
	until    time.Time
	backoff  *backoff
	failures int       // Away in a row
	failing  time.Time // since when
	outage   bool      // the namespace did not answer since the gate closed
	cond     Condition
	closed   time.Time // since when; before the first opening the zero time
	verified time.Time
	suspects map[string]*suspect
	starts   int             // so many have succeeded
	refusals int             // and were refused
	proof    time.Time       // when the latest start that succeeded began: what was refused before is not the configuration's fault
	blamed   map[string]bool // messages refused since the last success
	wake     chan struct{}   // the guard should look
	used     bool            // a start was asked for since the last verification
}

const (
	// failuresToClose: so many starts failing in a row, for at least failingFor, are Temporal's fault; and manyFailures are
	// at once. Fewer can be rows that fail while others succeed.
	failuresToClose = 5
	failingFor      = 2 * time.Second
	manyFailures    = 50
	// trialsAtOnce: of so many rows tried together one success opens the gate. A single one could be a bad row.
	trialsAtOnce = 16
	// trialsAtMost: while all of a trial fail the next is twice as large, since behind many bad messages there may be good
	// ones; but not where Temporal says that it is overloaded, or that the configuration is wrong.
	trialsAtMost = 128
	// trialPause bounds the pause between trials while the namespace answers.
	trialPause = 500 * time.Millisecond
	// A namespace verified longer ago than stale is verified again; one verified longer ago than expired starts nothing.
	stale, expired = time.Second, 5 * time.Second
)

func newGate(cfg Config) *gate {
	return &gate{
		cfg: cfg, size: trialsAtOnce, backoff: newBackoff(cfg.minBackoff, cfg.maxBackoff), wake: make(chan struct{}, 1),
		suspects: map[string]*suspect{}, blamed: map[string]bool{},
	}
}

// allow reports whether a start may be tried now, and takes the trial if there is one.
func (g *gate) allow(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	age := now.Sub(g.verified)
	g.used = true
	if age > stale {
		g.signal()
	}
	if g.open {
		return age <= expired
	}
	if g.trials > 0 && age <= expired {
		g.trials--
		g.trying++
		return true
	}
	return false
}

// sickAfter is how long a gate is closed before other relays take over, which costs a hand-over there and back.
const sickAfter = 3 * time.Second

// well reports whether workflows can be started, or could until a moment ago.
func (g *gate) well(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open || !g.closed.IsZero() && now.Sub(g.closed) < sickAfter
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// returnTrial gives back a trial in which nothing could be started.
func (g *gate) returnTrial() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.giveBack()
}

func (g *gate) giveBack() {
	if g.trying > 0 {
		g.trying--
		g.trials++
	}
}

// await sleeps until signalled or until d has passed; a negative d is no limit.
func (g *gate) await(ctx context.Context, d time.Duration) {
	var passed <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-ctx.Done():
	case <-g.wake:
	case <-passed:
	}
}

func (g *gate) signal() {
	select {
	case g.wake <- struct{}{}:
	default: // it has been told
	}
}

// due is how long the guard may sleep before it must verify the namespace; zero is now, negative is until signalled.
func (g *gate) due(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.trying > 0, g.trials > 0 && (!g.used || now.Sub(g.verified) <= stale):
		return -1
	case !g.open:
		return max(0, g.until.Sub(now))
	case g.used && now.Sub(g.verified) > stale:
		return 0
	}
	return -1
}

// verifiedAs takes what a look at the namespace came to.
func (g *gate) verifiedAs(o Outcome) []Condition {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.Class != Started {
		g.outage, g.size = true, trialsAtOnce
		return g.close(o, false)
	}
	g.verified = time.Now()
	g.used = false
	if g.open {
		return nil
	}
	if g.cond.Active {
		g.trials = g.size
		return nil
	}
	g.open = true
	return nil
}

// tried ends a trial that failed, and reports whether it was the last of those running.
func (g *gate) tried() bool {
	g.trying = max(0, g.trying-1)
	return g.trying == 0
}

// close shuts the gate, or keeps it shut for longer. It returns what to report. refused says that single messages were.
func (g *gate) close(o Outcome, refused bool) []Condition {
	name, detail := CondTemporal, "Temporal does not start workflows: "+o.Reason+". No message is failed or spends an "+
		"attempt; the relay tries again by itself"
	if o.Class == Misconfigured {
		name, detail = CondMisconfigured, o.Reason+". Nothing is moved to outbox_failed; the relay tries again by itself"
	}
	if g.open {
		g.closed = time.Now()
	}
	answers := g.trials+g.trying > 0 || time.Since(g.verified) < stale
	g.open, g.trials, g.trying = false, 0, 0
	pause := g.backoff.next()
	if answers && (o.Class == Away || refused) {
		pause = min(pause, trialPause)
	}
	g.until = time.Now().Add(pause)
	g.signal()
	if g.cond.Active && g.cond.Name == name {
		return nil
	}
	var report []Condition
	if g.cond.Active {
		g.cond.Active = false
		report = append(report, g.cond)
	}
	g.cond = Condition{Name: name, Active: true, Detail: detail}
	return append(report, g.cond)
}

// succeeded takes a start, begun at that time, that was settled. over says that an outage of the whole namespace is over.
func (g *gate) succeeded(began time.Time, id string) (over bool, report []Condition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = 0
	g.starts++
	delete(g.suspects, id)
	if began.After(g.proof) {
		g.proof = began
	}
	clear(g.blamed)
	if g.open {
		return false, nil
	}
	g.open, g.trials, g.trying, g.size = true, 0, 0, trialsAtOnce
	g.backoff.reset()
	over, g.outage = g.outage, false
	if !g.cond.Active {
		return over, nil
	}
	passed := Condition{Name: g.cond.Name, Detail: "workflows start again"}
	g.cond = Condition{}
	return over, []Condition{passed}
}

// failed takes a start that ended in Away or Misconfigured.
func (g *gate) failed(o Outcome) []Condition {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures++; g.failures == 1 {
		g.failing = time.Now()
	}
	if !g.open && (g.until.After(time.Now()) || !g.tried()) {
		return nil // one of many that were in flight when it closed, or other trials are still running
	}
	lasting := g.failures >= failuresToClose && time.Since(g.failing) >= failingFor
	if o.Class == Misconfigured || !g.open || lasting || g.failures >= manyFailures {
		g.resize(o.Class == Away && !o.Overload)
		return g.close(o, false)
	}
	return nil
}

// resize makes the next trial twice as large as one that has failed, where single messages may be to blame for that.
func (g *gate) resize(messages bool) {
	switch {
	case g.open:
	case messages:
		g.size = min(2*g.size, trialsAtMost)
	default:
		g.size = trialsAtOnce
	}
}
