package starter

import (
	"testing"
	"time"
)

// TestAMessageIsGuiltyOnlyByALaterSuccess: one begun before its first refusal says nothing of the configuration since.
func TestAMessageIsGuiltyOnlyByALaterSuccess(t *testing.T) {
	for _, c := range []struct {
		name   string
		proof  time.Duration // after the first refusal; the other success began before it
		guilty bool
	}{
		{"another began later and succeeded", time.Millisecond, true},
		{"all that succeeded began before", -time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newTestGate(t)
			g.verifiedAs(Outcome{})
			refused := 0
			for refused < 10*refusalsToMove {
				guilty, _ := g.refused("suspect", "no")
				refused++
				if guilty {
					break
				}
				g.succeeded(g.suspects["suspect"].refused.Add(-time.Hour), "before")
				g.succeeded(g.suspects["suspect"].refused.Add(c.proof), "other")
				g.succeeded(g.suspects["suspect"].refused.Add(-time.Hour), "before") // takes nothing back
			}
			if c.guilty && refused != refusalsToMove || !c.guilty && refused != 10*refusalsToMove {
				t.Errorf("found guilty, or left, after %d refusals", refused)
			}
			if _, known := g.suspects["suspect"]; known == c.guilty {
				t.Errorf("still a suspect: %v", known)
			}
		})
	}
}
