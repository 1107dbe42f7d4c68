package monitor

import (
	"maps"
	"slices"
	"time"
)

// memory is what a Watch has seen of each condition, so that what is short is told to nobody and what hovers at a threshold is
// told once.
type memory struct {
	t     Thresholds
	known map[string]time.Time // by name: since when it could be seen, with nothing else explaining it
	held  map[key]*held

	looked bool // at least once
}

// held is a condition that has been seen.
type held struct {
	fact   Fact
	since  time.Time // seen without a pause
	last   time.Time
	active bool // people should know
}

func newMemory(t Thresholds) *memory {
	return &memory{t: t, known: map[string]time.Time{}, held: map[key]*held{}}
}

// forget begins anew: what was seen before a time in which nobody looked proves nothing.
func (m *memory) forget() {
	clear(m.known)
	for k, h := range m.held {
		if !h.active {
			delete(m.held, k)
		}
	}
}

// see takes what shows now. Silence counts only from when it could be heard: after an outage everything is long ago.
func (m *memory) see(facts []Fact, unknown map[string]bool, now time.Time) {
	seen := map[key]bool{}
	for _, name := range order {
		switch _, known := m.known[name]; {
		case unknown[name] || caused(name, facts):
			delete(m.known, name)
		case !known && !m.looked && kinds[name].count != nil:
			m.known[name] = time.Time{} // Temporal says for how long, whoever looks
		case !known:
			m.known[name] = now
		}
	}
	m.looked = true
	for _, f := range facts {
		seen[f.key()] = true
		m.hold(f, now)
	}
	for k, h := range m.held {
		known, can := m.known[k.name]
		switch {
		case seen[k]:
		case !can:
			h.last = now // it may last, and nobody can see
		case now.Sub(h.last) >= m.t.Clear && now.Sub(known) >= m.t.Clear, !h.active:
			delete(m.held, k)
		}
	}
}

func (m *memory) hold(f Fact, now time.Time) {
	h := m.held[f.key()]
	if h == nil {
		h = &held{since: now}
		m.held[f.key()] = h
	}
	h.fact, h.last = f, now
	known, can := m.known[f.Name]
	if !can {
		h.since = now // from when it is seen again with nothing to explain it
		return
	}
	if f.Rows { // they may be of a process that is long gone, and the database's clock may have been set
		f.For = min(f.For, now.Sub(h.since)+m.t.missed())
	}
	lasted := min(max(now.Sub(h.since), f.For), now.Sub(known))
	h.active = h.active || lasted >= f.Threshold
}

// active are the conditions that people should know of, causes first.
func (m *memory) active(now time.Time) (all []Condition) {
	keys := slices.SortedFunc(maps.Keys(m.held), func(a, b key) int {
		if by := slices.Index(order, a.name) - slices.Index(order, b.name); by != 0 {
			return by
		}
		return slices.Compare([]string{a.subject}, []string{b.subject})
	})
	for _, k := range keys {
		if h := m.held[k]; h.active {
			lasted := max(now.Sub(h.since), min(h.fact.For, remembered))
			all = append(all, Condition{Name: k.name, Subject: k.subject, Title: kinds[k.name].title, Detail: h.fact.Detail, For: lasted.Seconds()})
		}
	}
	return all
}

// holds reports whether a condition shows, or may: that it has passed must be seen.
func (m *memory) holds(k key) bool {
	h := m.held[k]
	_, can := m.known[k.name]
	return h != nil || !can
}
