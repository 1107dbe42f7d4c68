package monitor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Print writes the state as a table for a person. ≈ marks an estimate, and ? what is not known.
func (s *State) Print(w io.Writer) error {
	var b strings.Builder
	s.verdict(&b)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", what, plain(fmt.Sprintf(format, args...)))
	} // Flush returns the error
	row("database", "%s", s.Database.state())
	row("Temporal", "%s", s.Temporal.state())
	if s.Outbox.Error != "" {
		row("outbox", "cannot be read: %s", s.Outbox.Error)
	} else if s.Database.OK {
		row("pending", "%s, the oldest is %s old, seen waiting for %s", s.Outbox.Pending, ago(s.Outbox.Oldest), ago(s.Outbox.Waiting))
		row("failed messages", "%s", s.Outbox.Failed)
	}
	if s.Database.OK {
		row("shards", "%s", s.shards())
		row("sends", "%s", s.sends())
		row("SES quota", "%s", s.Quota)
	}
	row("workflows", "running %s, parked %s, stuck %s, workflow tasks failing %s, failed in the last hour %s", number(s.Workflows.Running),
		number(s.Workflows.Parked), number(s.Workflows.Stuck), number(s.Workflows.TasksFail), number(s.Workflows.Failed))
	for _, q := range s.Queues {
		row("task queue", "%s (%s): %d wait, the oldest for %s, %d workers", q.Name, q.Kind, q.Backlog, ago(q.BacklogAge), q.Workers)
	}
	for _, stop := range s.Stops {
		row("sending stopped", "%s since %s: %s", stop.Class, stop.Since.Format("2006-01-02 15:04:05"), stop.Cause)
	}
	for _, p := range s.Processes {
		dead := ""
		if !p.Alive {
			dead = ": dead"
		}
		row(p.Role, "%s:%d, last sign of life %s ago%s", p.Host, p.PID, ago(p.SeenAgo), dead)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *State) verdict(b *strings.Builder) {
	all := s.All()
	if len(all) == 0 {
		b.WriteString("All is well.\n\n")
		return
	}
	for _, c := range all {
		subject := ""
		if c.Subject != "" {
			subject = " (" + c.Subject + ")"
		}
		fmt.Fprintf(b, "%s: %s%s\n  %s\n  %s\n", c.Name, c.Title, plain(subject), plain(c.Detail), kinds[c.Name].do)
	}
	b.WriteString("\n")
}

func (p Part) state() string {
	if p.OK {
		return p.Name + ", answers"
	}
	return strings.TrimPrefix(p.Name+": ", ": ") + p.Error
}

func (s *State) shards() string {
	var parts []string
	for _, o := range owners(s.Shards) {
		owner := o.Owner
		if owner == "" {
			owner = "nobody"
		}
		parts = append(parts, owner+" reads "+o.Shards)
	}
	return strings.Join(parts, "; ")
}

func (s *State) sends() string {
	var parts []string
	for _, outcome := range outcomes {
		parts = append(parts, fmt.Sprintf("%s %d", outcome, s.Sends[outcome]))
	}
	latest := ", none sent yet"
	if s.SentAgo != nil {
		latest = ", the latest was sent " + ago(*s.SentAgo) + " ago"
	}
	return strings.Join(parts, ", ") + latest
}

// outcomes of a send, as activities.Verdict has them.
var outcomes = []string{"sent", "later", "never", "stop", "unknown"}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// plain keeps what others have written from speaking to the terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
