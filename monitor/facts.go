package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepost/oncepost/schemas"
)

func only(holds bool, f Fact) []Fact {
	if holds {
		return []Fact{f}
	}
	return nil
}

// silence is for how long none of the processes that count has written its row.
func (s *State) silence(counts func(Process) bool) time.Duration {
	least := forEver
	for _, p := range s.Processes {
		if counts(p) {
			least = min(least, seconds(p.SeenAgo))
		}
	}
	return least
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func said(silence time.Duration) string {
	if silence > remembered {
		return "none has given a sign of life"
	}
	return "the last sign of life is " + silence.Round(time.Second).String() + " old"
}

// missed is after how long a silence is no longer the pause between two rows.
func (t Thresholds) missed() time.Duration { return 2 * t.BeatEvery() }

func seeNoRelay(s *State, t Thresholds) []Fact {
	silence := s.silence(func(p Process) bool { return p.Role == RoleRelay })
	return only(silence > t.missed(), Fact{For: silence, Threshold: t.NoRelay, Rows: true, Detail: said(silence)})
}

func seeNoWorker(s *State, t Thresholds) []Fact {
	var missing []string
	var longest time.Duration
	for _, queue := range []string{schemas.WorkflowTaskQueue, schemas.SendTaskQueue} {
		silence := s.silence(func(p Process) bool { return p.Worker != nil && slices.Contains(p.Worker.TaskQueues, queue) })
		if silence > t.missed() {
			missing, longest = append(missing, queue+": "+said(silence)), max(longest, silence)
		}
	}
	return only(len(missing) > 0, Fact{For: longest, Threshold: t.NoWorker, Rows: true, Detail: "of the task queue " + strings.Join(missing, "; of ")})
}

// reconnects is for how long a relay may pause before it opens new sessions, where it says itself that it could not use its old ones:
// after a failover, or when it was frozen.
const reconnects = 15 * time.Second

func seeStalled(s *State, t Thresholds) []Fact {
	var longest time.Duration
	var who []string
	for _, p := range s.Processes {
		if !p.Alive || p.Relay == nil {
			continue
		}
		silent := seconds(p.Relay.ReadAgo)
		if p.Relay.Conditions[CondDatabase] != "" {
			silent -= reconnects
		}
		if silent > t.Stalled/2 {
			longest = max(longest, silent)
			who = append(who, fmt.Sprintf("%s:%d (the last read is %.0f seconds old)", p.Host, p.PID, p.Relay.ReadAgo))
		}
	}
	return only(len(who) > 0, Fact{For: longest, Threshold: t.Stalled, Detail: "it does not read outbox_messages: " + strings.Join(who, ", ")})
}

// reported is a condition that relays report of themselves.
func reported(name string) func(*State, Thresholds) []Fact {
	return func(s *State, _ Thresholds) []Fact {
		for _, p := range s.Processes {
			if p.Alive && p.Relay != nil {
				if detail, holds := p.Relay.Conditions[name]; holds {
					return []Fact{{Detail: fmt.Sprintf("%s:%d: %s", p.Host, p.PID, detail)}}
				}
			}
		}
		return nil
	}
}

// seeStopped tells one class from another: a stop whose cause changes is another.
func seeStopped(s *State, _ Thresholds) (facts []Fact) {
	for _, stop := range s.Stops {
		who, subject := "", stop.Class
		if stop.By != "" {
			who = ", by " + stop.By
		}
		if stop.Scope != "all" {
			subject += " of " + stop.Scope
		}
		facts = append(facts, Fact{Subject: subject, Detail: fmt.Sprintf("since %s%s: %s", stop.Since.Format(time.RFC3339), who, stop.Cause)})
	}
	return facts
}

func seeOldest(s *State, t Thresholds) []Fact {
	waiting := seconds(s.Outbox.Waiting)
	return only(waiting > t.OldestRow/2, Fact{For: waiting, Threshold: t.OldestRow, Detail: fmt.Sprintf(
		"one has been seen waiting for %s, and %s in outbox_messages", waiting.Round(time.Second), s.Outbox.Pending.of("message"))})
}

// seeUnreadable is what other conditions are blind without: servers that answer, and do not say what they are asked. Workflow tasks
// that fail are left out, since a Temporal of before TemporalReportedProblems never counts them.
// A relay that is stalled by the same lock explains it, and has its threshold before.
func seeUnreadable(s *State, t Thresholds) (facts []Fact) {
	if s.Outbox.Error != "" {
		facts = append(facts, Fact{Subject: "outbox", Threshold: 2 * t.Stalled, Detail: "the outbox: " + s.Outbox.Error})
	}
	if w := s.Workflows; s.Temporal.OK && (w.Failed == nil || w.ParkedLong == nil || w.Stuck == nil) {
		facts = append(facts, Fact{
			Subject: "workflows", Threshold: 2 * t.Stalled,
			Detail: "Temporal answers, and does not count workflows by " + schemas.AttributeState + ": look at its visibility store, at the namespace's search attributes, and at this process's log",
		})
	}
	return facts
}

func ofFailed(w *Workflows) *int64     { return w.Failed }
func ofParkedLong(w *Workflows) *int64 { return w.ParkedLong }
func ofStuck(w *Workflows) *int64      { return w.Stuck }
func ofTasksFail(w *Workflows) *int64  { return w.TasksFail }

func counted(of func(*Workflows) *int64, what string) func(*State, Thresholds) []Fact {
	return func(s *State, _ Thresholds) []Fact {
		n := of(&s.Workflows)
		if n == nil || *n == 0 {
			return nil
		}
		return []Fact{{Detail: Count{*n, true}.of("workflow") + " " + what}}
	}
}

// of says how many there are of something.
func (c Count) of(what string) string {
	switch {
	case c.Rows == 1:
		return "1 " + what
	case c.Exact:
		return fmt.Sprintf("%d %ss", c.Rows, what)
	}
	return fmt.Sprintf("≈%d %ss", c.Rows, what)
}
