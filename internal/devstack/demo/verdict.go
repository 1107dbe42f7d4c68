package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// expectation is what must come of one message.
type expectation struct {
	id, eventType string
	text          string    // for a person
	nothing       bool      // it never was
	to            []string  // one mail each
	due           time.Time // no mail before this, by the database's clock; zero: at once
}

// faults are the ways in which a message did not come out as it should. ahead is the database's clock minus the
// stand-in's.
func (e expectation) faults(s sight, ahead time.Duration) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	want := completed
	if e.nothing {
		want = ""
	}
	if s.workflow != want {
		add("workflow %s, not %s", orNone(s.workflow), orNone(want))
	}
	if s.waiting > 0 {
		add("still in outbox_messages")
	}
	if s.failed > 0 {
		add("in outbox_failed")
	}
	if got, want := recipients(s.mails), slices.Sorted(slices.Values(e.to)); !slices.Equal(got, want) {
		add("mails to %s, not to %s", list(got), list(want))
	}
	for _, m := range s.mails {
		if early := e.due.Sub(m.ReceivedAt.Add(ahead)); early > 0 {
			add("a mail %s too early", early)
		}
	}
	return faults
}

// seen describes a sight to a person.
func (e expectation) seen(s sight, ahead time.Duration) string {
	if s.workflow == "" && len(s.mails) == 0 {
		return "no workflow, no mail"
	}
	text := fmt.Sprintf("%s; %d mail", orNone(s.workflow), len(s.mails))
	if len(s.mails) != 1 {
		text += "s"
	}
	if len(s.mails) == 0 {
		return text
	}
	if !e.due.IsZero() {
		text += " at " + s.mails[0].ReceivedAt.Add(ahead).UTC().Format("15:04:05.000")
	}
	return text + ": " + strings.Join(subjects(s.mails), " | ")
}

func recipients(mails []sesstandin.Mail) (to []string) {
	for _, m := range mails {
		to = append(to, m.To...)
	}
	slices.Sort(to)
	return to
}

// subjects names each one once.
func subjects(mails []sesstandin.Mail) (all []string) {
	for _, m := range mails {
		all = append(all, m.Subject)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func list(words []string) string {
	if len(words) == 0 {
		return "nobody"
	}
	return strings.Join(words, ", ")
}

func orNone(status string) string {
	if status == "" {
		return "none"
	}
	return status
}
