package worker

import (
	"context"
	"sync"

	"github.com/oncepost/oncepost/activities"
)

// unknownRun is how many different messages in a row, without a success in between, may end in this process with nobody knowing
// whether they were sent, before that is a stop: something between here and the provider loses its answers.
const unknownRun = 5

// shift is the Mailer of one worker of sends, from its start to its stop. It watches what the sends meet. From the first stop on
// it lets nothing through: what has been polled by then goes back unspent.
type shift struct {
	mailer  activities.Mailer
	run     *unknowns // of the process, for all its shifts
	trial   bool
	strict  bool // an unknown is a stop: the trial of a run of unknowns
	met     func()
	heard   func(activities.Answer)
	scopeOf func(activities.Scope) string

	mu   sync.Mutex
	over bool
	stop *Stop // what this shift's own sends have met
	sent bool
}

// Send implements activities.Mailer.
func (s *shift) Send(ctx context.Context, m activities.Mail) activities.Answer {
	if s.isOver() {
		return activities.Answer{
			Verdict: activities.VerdictStop, Class: "held_back", Scope: activities.ScopeAccount,
			Text: "sending is stopped (`oncepost sending status` says why); this mail has not been tried",
		}
	}
	a := s.mailer.Send(ctx, m)
	s.note(m, a)
	return a
}

func (s *shift) note(m activities.Mail, a activities.Answer) {
	if s.heard != nil {
		s.heard(a)
	}
	switch a.Verdict {
	case activities.VerdictSent:
		s.run.clear()
		s.succeed()
	case activities.VerdictStop:
		s.end(&Stop{Scope: s.scopeOf(a.Scope), Class: a.Class, Text: a.Text})
	case activities.VerdictUnknown:
		if n := s.run.add(m.MessageID); n >= unknownRun || s.strict {
			s.end(&Stop{
				Scope: ScopeAll, Class: ClassUnknownRun,
				Text: "of the mails of several messages in a row nobody knows whether they were sent, the last because of " + a.Class,
			})
		}
	case activities.VerdictLater, activities.VerdictNever: // say nothing about other mails
	}
}

func (s *shift) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end lets nothing through from now on. Of several reasons the first counts: those after it are of sends that were under way.
func (s *shift) end(why *Stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.over, s.stop = true, why; why != nil {
		s.met()
	}
}

// succeed counts, in a trial, until a stop is met.
func (s *shift) succeed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.sent || !s.trial {
		return
	}
	s.sent = true
	s.met()
}

// outcome is what the shift has met up to now.
func (s *shift) outcome() (stop *Stop, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop, s.sent
}

// unknowns are the messages since the last success whose sends are unknown.
type unknowns struct {
	mu       sync.Mutex
	messages map[string]bool
}

func (u *unknowns) add(messageID string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.messages) < unknownRun { // more need not be told apart
		u.messages[messageID] = true
	}
	return len(u.messages)
}

func (u *unknowns) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.messages)
}
