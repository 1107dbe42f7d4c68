package starter

import (
	"fmt"
	"time"
)

// suspect is a message that Temporal refused. It is guilty once another message, begun later, has started.
type suspect struct {
	refused          time.Time // first
	times            int
	starts, refusals int // the gate's at that time
}

const (
	// refusalsToClose: so many messages refused with no success between them are the configuration's.
	refusalsToClose = 5
	// refusalsAlone: nothing else has started that could tell whether the message or the configuration is to blame. It is
	// reported as the configuration, and stays in the table until a start proves otherwise.
	refusalsAlone = 6
	// refusalsToMove: a message refused so often in a row, over some 15 seconds, while another start has succeeded since the
	// first time, is to blame. Once is not enough: of several frontends one can be wrong. Where more than every tenth start of
	// others was refused meanwhile that may be so, and it takes refusalsAmongMany: some minutes.
	refusalsToMove    = 5
	refusalsAmongMany = 20
)

// refused takes a message that Temporal refused for good, and decides whether the message is to blame.
func (g *gate) refused(id, reason string) (guilty bool, report []Condition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.suspects[id]
	if s == nil {
		s = &suspect{refused: time.Now(), starts: g.starts, refusals: g.refusals}
		g.suspects[id] = s
	}
	s.times++
	g.refusals++
	if g.open && g.proof.After(s.refused) { // starts succeed beside it: it is the message's fault, and closes no gate
		if s.times < s.needed(g) {
			return false, nil
		}
		delete(g.suspects, id)
		return true, nil
	}
	g.blamed[id] = true
	if g.open && s.times < refusalsAlone && len(g.blamed) < refusalsToClose {
		return false, nil
	}
	return false, g.endTrial(reason)
}

// needed is how many refusals show that the message is to blame.
func (s *suspect) needed(g *gate) int {
	others, starts := g.refusals-s.refusals-s.times, g.starts-s.starts
	if 10*others > starts {
		return refusalsAmongMany
	}
	return refusalsToMove
}

// endTrial closes the gate after a refusal, once no other trial is running.
func (g *gate) endTrial(reason string) []Condition {
	if !g.open && (g.until.After(time.Now()) || !g.tried()) {
		return nil
	}
	g.resize(true)
	return g.close(Outcome{Class: Misconfigured, Reason: fmt.Sprintf("Temporal refuses every message that is tried (%s), "+
		"and none has started since that could show that the messages are to blame", reason)}, true)
}

// acquitted forgets a suspect that has started after all, or whose row is gone.
func (g *gate) acquitted(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.suspects, id)
}

// forgetStale forgets suspects that have not been tried for long: their rows are gone.
func (g *gate) forgetStale(age time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, s := range g.suspects {
		if time.Since(s.refused) > age {
			delete(g.suspects, id)
		}
	}
}
