package starter

import (
	"testing"
	"time"
)

func newTestGate(t *testing.T) *gate {
	t.Helper()
	cfg, err := quick().withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return newGate(cfg)
}

func away(g *gate, n int) (reports []Condition) {
	for range n {
		reports = append(reports, g.failed(Outcome{Class: Away, Reason: "gone"})...)
	}
	return reports
}

// TestATrialNeverShutsTheGateForEver: whatever a trial comes to, another one follows.
func TestATrialNeverShutsTheGateForEver(t *testing.T) {
	g := newTestGate(t)
	g.verifiedAs(Outcome{})
	began := time.Now()
	for range refusalsToMove - 1 { // a poison message, almost found guilty
		g.refused("poison", "no")
		g.succeeded(time.Now().Add(time.Millisecond), "good")
	}
	away(g, manyFailures)
	for round := range 5 {
		g.until = time.Time{}
		g.verifiedAs(Outcome{})
		for g.allow(time.Now()) {
			switch round {
			case 0:
				g.refused("poison", "no")
			case 1:
				g.returnTrial()
				g.failed(Outcome{Class: Away, Reason: "gone"})
			case 2:
				g.refused("other", "no")
			default:
				g.failed(Outcome{Class: Away, Reason: "gone"})
			}
			if time.Since(began) > 10*time.Second {
				t.Fatal("trials without an end")
			}
			if round < 2 && g.trials == trialsAtOnce {
				break // given back
			}
		}
		if !g.open && g.trials == 0 && g.trying > 0 {
			t.Fatalf("round %d: shut with %d trials running and none that runs", round, g.trying)
		}
	}
}

func TestFailuresThatCloseTheGate(t *testing.T) {
	for _, c := range []struct {
		name     string
		failures int
		lasting  time.Duration
		closes   bool
	}{
		{"few, for long", failuresToClose - 1, time.Hour, false},
		{"enough, at once", failuresToClose, 0, false},
		{"enough, not for long enough", failuresToClose, failingFor - time.Second, false},
		{"enough, for long enough", failuresToClose, failingFor, true},
		{"almost many, at once", manyFailures - 1, 0, false},
		{"many, at once", manyFailures, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newTestGate(t)
			g.verifiedAs(Outcome{})
			reports := away(g, 1)
			g.failing = g.failing.Add(-c.lasting)
			reports = append(reports, away(g, c.failures-1)...)
			if g.isOpen() == c.closes {
				t.Errorf("open: %v", g.isOpen())
			}
			if closed := len(reports) == 1 && reports[0].Name == CondTemporal && reports[0].Active; closed != c.closes {
				t.Errorf("reports %v", reports)
			}
		})
	}
}

func TestASuccessBetweenFailuresKeepsTheGateOpen(t *testing.T) {
	g := newTestGate(t)
	g.verifiedAs(Outcome{})
	for range 3 {
		away(g, 1)
		g.failing = g.failing.Add(-time.Hour)
		away(g, failuresToClose-2)
		if !g.isOpen() {
			t.Fatal("failures with a success between them closed the gate")
		}
		g.succeeded(time.Now(), "good")
	}
}

// TestNothingIsTriedOnAnOldVerification: the namespace may have been rebuilt since.
func TestNothingIsTriedOnAnOldVerification(t *testing.T) {
	g := newTestGate(t)
	if g.allow(time.Now()) {
		t.Error("a start was allowed before the namespace was verified")
	}
	g.verifiedAs(Outcome{})
	old := g.verified.Add(expired + time.Millisecond)
	if g.allow(old) || !g.allow(g.verified.Add(expired)) {
		t.Error("an open gate must allow starts until the verification has expired, and none then")
	}
	away(g, manyFailures)
	if g.allow(time.Now()) {
		t.Error("a closed gate allowed a start that is no trial")
	}
	g.verifiedAs(Outcome{})
	old = g.verified.Add(expired + time.Millisecond)
	if g.allow(old) || g.trials != trialsAtOnce || g.trying != 0 {
		t.Errorf("a trial was taken on an old verification: %d left, %d running", g.trials, g.trying)
	}
	if g.due(old) != 0 {
		t.Error("an old verification is not renewed for a trial")
	}
	for range trialsAtOnce {
		if !g.allow(g.verified.Add(expired)) {
			t.Fatal("a trial was not allowed")
		}
	}
	if g.allow(g.verified) {
		t.Error("one trial too many")
	}
}
