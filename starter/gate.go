package starter

import (
	"context"
	"fmt"
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
	trial    bool // closed, but the namespace answers: one start is allowed
	trying   bool // the trial is running
	until    time.Time
	backoff  *backoff
	failures int // Away in a row
	cond     Condition
	verified time.Time
	suspects map[string]*suspect
	blamed   map[string]int // refused messages by reason since the last success
	wake     chan struct{}  // the guard should look
	used     bool           // a start was asked for since the last verification
}

// suspect is a message that Temporal refused. It is guilty once another message, begun later, has started.
type suspect struct {
	refused time.Time // first
	times   int
	cleared bool // a later start succeeded: the configuration is not to blame
}

const (
	// failuresToClose: so many starts failing in a row, with no success between them, are Temporal's fault.
	failuresToClose = 5
	// refusalsToClose: so many messages refused for one reason, with no success between them, are the configuration's.
	refusalsToClose = 5
	// refusalsAlone: with nothing else to start that could tell, a message refused so often is to blame.
	refusalsAlone = 6
	// A namespace verified longer ago than stale is verified again; one verified longer ago than expired starts nothing.
	stale, expired = time.Second, 5 * time.Second
)

func newGate(cfg Config) *gate {
	return &gate{
		cfg: cfg, backoff: newBackoff(cfg.minBackoff, cfg.maxBackoff), wake: make(chan struct{}, 1),
		suspects: map[string]*suspect{}, blamed: map[string]int{},
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
	if g.trial {
		g.trial, g.trying = false, true
		return true
	}
	return false
}

// returnTrial gives back a trial in which nothing could be started.
func (g *gate) returnTrial() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trying {
		g.trial, g.trying = true, false
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
	case g.trial, g.trying:
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
		return g.close(o)
	}
	g.verified = time.Now()
	g.used = false
	if g.open {
		return nil
	}
	if g.cond.Active {
		g.trial = true
		return nil
	}
	g.open = true
	return nil
}

// close shuts the gate, or keeps it shut for longer. It returns what to report.
func (g *gate) close(o Outcome) []Condition {
	name, detail := CondTemporal, "Temporal does not start workflows: "+o.Reason+". No message is failed or spends an "+
		"attempt; the relay tries again by itself"
	if o.Class == Misconfigured {
		name, detail = CondMisconfigured, o.Reason+". Nothing is moved to outbox_failed; the relay tries again by itself"
	}
	g.open, g.trial, g.trying = false, false, false
	pause := g.backoff.next()
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

// succeeded takes a start, begun at that time, that was settled. opened says that an outage is over.
func (g *gate) succeeded(began time.Time, id string) (opened bool, report []Condition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = 0
	delete(g.suspects, id)
	for _, s := range g.suspects {
		s.cleared = s.cleared || began.After(s.refused)
	}
	clear(g.blamed)
	if g.open {
		return false, nil
	}
	g.open, g.trial, g.trying = true, false, false
	g.backoff.reset()
	if !g.cond.Active {
		return true, nil // closed, and never reported: the first verification had not come
	}
	passed := Condition{Name: g.cond.Name, Detail: "workflows start again"}
	g.cond = Condition{}
	return true, []Condition{passed}
}

// failed takes a start that ended in Away or Misconfigured.
func (g *gate) failed(o Outcome) []Condition {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures++; !g.open && g.until.After(time.Now()) {
		return nil // one of many that were in flight when it closed
	}
	if o.Class == Misconfigured || !g.open || g.failures >= failuresToClose {
		return g.close(o)
	}
	return nil
}

// refused takes a message that Temporal refused for good, and decides whether the message is to blame.
func (g *gate) refused(id, reason string) (guilty bool, report []Condition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.suspects[id]
	if s == nil {
		s = &suspect{refused: time.Now()}
		g.suspects[id] = s
	}
	s.times++
	if s.cleared || s.times >= refusalsAlone && g.open {
		delete(g.suspects, id)
		return true, nil
	}
	if s.times == 1 {
		g.blamed[reason]++
	}
	if !g.open || g.blamed[reason] >= refusalsToClose {
		o := Outcome{Class: Misconfigured, Reason: fmt.Sprintf("Temporal refuses every message for one reason (%s), which no single "+
			"message can be to blame for", reason)}
		return false, g.close(o)
	}
	return false, nil
}

// acquitted forgets a suspect that has started after all, or whose row is gone.
func (g *gate) acquitted(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.suspects, id)
}
