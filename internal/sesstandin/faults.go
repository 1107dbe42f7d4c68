package sesstandin

import (
	"slices"
	"strings"
	"sync"
)

// FaultStatus is an injected fault and what has become of it.
type FaultStatus struct {
	ID      int   `json:"id"`
	Matched int   `json:"matched"` // requests it applied to, those let pass by After included
	Fired   int   `json:"fired"`
	Fault   Fault `json:"fault"`
}

// faults is the list of scripted failures. A fault that has fired Times times leaves it.
type faults struct {
	mu   sync.Mutex
	next int
	list []*FaultStatus
}

// inject appends a fault and returns its ID.
func (f *faults) inject(fault Fault) (int, error) {
	fault, err := fault.normalized()
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	f.list = append(f.list, &FaultStatus{ID: f.next, Fault: fault})
	return f.next, nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

func (f *faults) active() []FaultStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]FaultStatus, 0, len(f.list))
	for _, s := range f.list {
		out = append(out, *s)
	}
	return out
}

// script is what the faults have in store for one request.
type script struct {
	fault  Fault // the one that fires, or the zero value
	id     int   // its ID; 0 if none fires
	limits []limit
	ids    []int // the faults that the limits belong to
}

// pick decides which fault fires. Limits fire only when they refuse, so they are handed out
// to be checked where the mail is counted, and every later fault is still considered.
func (f *faults) pick(action, messageID string, recipients []string) script {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sc script
	for _, s := range slices.Clone(f.list) {
		if !s.Fault.applies(action, messageID, recipients) {
			continue
		}
		s.Matched++
		if s.Matched <= s.Fault.After {
			continue
		}
		if l, ok := s.Fault.limit(); ok {
			sc.limits, sc.ids = append(sc.limits, l), append(sc.ids, s.ID)
			continue
		}
		f.countFired(s)
		sc.fault, sc.id = s.Fault, s.ID
		return sc
	}
	return sc
}

// fired counts a limit that refused a mail.
func (f *faults) fired(id int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.list {
		if s.ID == id {
			f.countFired(s)
			return
		}
	}
}

func (f *faults) countFired(s *FaultStatus) {
	s.Fired++
	if s.Fault.Times > 0 && s.Fired >= s.Fault.Times {
		f.list = slices.DeleteFunc(f.list, func(other *FaultStatus) bool { return other == s })
	}
}

func (f Fault) applies(action, messageID string, recipients []string) bool {
	switch f.Action {
	case action, AnyAction:
	case "":
		if !sends(action) {
			return false
		}
	default:
		return false
	}
	if f.Match == "" || f.Match == messageID {
		return true
	}
	return slices.ContainsFunc(recipients, func(r string) bool { return strings.Contains(r, f.Match) })
}
