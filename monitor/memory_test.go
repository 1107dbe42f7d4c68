package monitor

import (
	"slices"
	"testing"
	"time"
)

// past is a memory, and a clock that the test moves.
type past struct {
	*testing.T
	m   *memory
	now time.Time
}

func newPast(t *testing.T) *past {
	t.Helper()
	return &past{t, newMemory(Thresholds{}.WithDefaults()), time.Now()}
}

// see lets facts show for so long, looked at every 5 s.
func (p *past) see(d time.Duration, unknown []string, facts ...Fact) {
	names := map[string]bool{}
	for _, name := range unknown {
		names[name] = true
	}
	for end := p.now.Add(d); !p.now.After(end); p.now = p.now.Add(5 * time.Second) {
		p.m.see(facts, names, p.now)
	}
}

func (p *past) want(names ...string) {
	p.Helper()
	var got []string
	for _, c := range p.m.active(p.now) {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, names) {
		p.Errorf("active: %q, want %q", got, names)
	}
}

func silent(name string, d time.Duration) Fact {
	return Fact{Name: name, For: d, Threshold: 30 * time.Second}
}

// heard is a silence by the times of rows.
func heard(name string, d time.Duration) Fact {
	f := silent(name, d)
	f.Rows = true
	return f
}

func TestWhatIsShortIsToldToNobody(t *testing.T) {
	p := newPast(t)
	p.see(time.Minute, nil)
	p.see(25*time.Second, nil, silent(CondTemporal, 0))
	p.want()
	p.see(5*time.Second, nil, silent(CondTemporal, 0))
	p.want(CondTemporal)
}

func TestAPauseBeginsAnew(t *testing.T) {
	p := newPast(t)
	p.see(25*time.Second, nil, silent(CondTemporal, 0))
	p.see(0, nil)
	p.see(25*time.Second, nil, silent(CondTemporal, 0))
	p.want()
}

func TestSilenceCounts(t *testing.T) {
	p := newPast(t)
	p.see(time.Minute, nil)
	for silence := 11 * time.Second; silence < 30*time.Second; silence += 5 * time.Second {
		p.see(0, nil, heard(CondNoRelay, silence))
		p.want()
	}
	p.see(0, nil, heard(CondNoRelay, 31*time.Second))
	p.want(CondNoRelay)
}

// After a start, and after an outage of the database, everything has been silent for long.
func TestSilenceCountsFromWhenItCouldBeHeard(t *testing.T) {
	p := newPast(t)
	p.see(20*time.Second, nil, silent(CondNoRelay, time.Hour))
	p.want()
	p = newPast(t)
	p.see(time.Minute, nil)
	p.see(10*time.Minute, []string{CondNoRelay}, silent(CondDatabase, 0))
	p.see(20*time.Second, nil, silent(CondNoRelay, 10*time.Minute))
	p.want()
	p.see(10*time.Second, nil, silent(CondNoRelay, 10*time.Minute))
	p.want(CondNoRelay)
}

// Who stops in order leaves no row: that is no silence since the beginning of time.
func TestNoSignAtAllTakesTheThreshold(t *testing.T) {
	p := newPast(t)
	p.see(time.Hour, nil)
	p.see(15*time.Second, nil, heard(CondNoRelay, forEver))
	p.want()
	p.see(10*time.Second, nil, heard(CondNoRelay, forEver))
	p.want(CondNoRelay)
}

func TestACauseKeepsItsConsequencesQuiet(t *testing.T) {
	p := newPast(t)
	p.see(time.Minute, nil)
	old := Fact{Name: CondOldestRow, For: time.Hour, Threshold: time.Minute}
	p.see(10*time.Minute, nil, silent(CondTemporal, 0), old)
	p.want(CondTemporal)
	p.see(60*time.Second, nil, old) // the cause has passed: it has a minute to go away
	p.want(CondOldestRow)           // Temporal is over
	p = newPast(t)
	p.see(time.Minute, nil)
	p.see(10*time.Minute, nil, silent(CondTemporal, 0), old)
	p.see(50*time.Second, nil, old)
	p.want()
}

func TestWhatCannotBeSeenLasts(t *testing.T) {
	p := newPast(t)
	p.see(time.Minute, nil, silent(CondNoRelay, 0))
	p.want(CondNoRelay)
	p.see(10*time.Minute, []string{CondNoRelay}, silent(CondDatabase, 0))
	p.want(CondDatabase, CondNoRelay)
	p.see(time.Minute, nil)
	p.want()
}

func TestItIsOverAfterAWhile(t *testing.T) {
	p := newPast(t)
	p.see(time.Minute, nil, silent(CondNoRelay, 0))
	p.see(0, nil)
	p.want(CondNoRelay)
	p.see(time.Minute, nil)
	p.want()
}

func TestAFrozenWatchBeginsAnew(t *testing.T) {
	p := newPast(t)
	p.see(20*time.Second, nil, silent(CondTemporal, 0))
	p.now = p.now.Add(time.Hour)
	p.m.forget()
	p.see(20*time.Second, nil, silent(CondTemporal, 0))
	p.want()
}

// A relay that opens new sessions is given time for it; one that reads nothing with those it has is not.
func TestARelayThatReconnectsHasNotStalled(t *testing.T) {
	relay := Relay{ReadAgo: 40}
	s := State{Database: Part{OK: true}, Processes: []Process{{Role: RoleRelay, Alive: true, Published: Published{Relay: &relay}}}}
	stalled := func() time.Duration {
		for _, f := range seeStalled(&s, Thresholds{}.WithDefaults()) {
			return f.For
		}
		return 0
	}
	if d := stalled(); d != 40*time.Second {
		t.Error(d)
	}
	relay.Conditions = map[string]string{CondDatabase: "connection reset"}
	if d := stalled(); d != 25*time.Second {
		t.Error(d)
	}
	relay.ReadAgo = 20
	if d := stalled(); d != 0 {
		t.Error(d)
	}
}
