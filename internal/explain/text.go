package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the report for a person.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t ")) } // Flush reports what failed
	line(r.MessageID)
	line(r.Summary)
	if row := r.Row; row != nil {
		line("", "")
		line("ROW", row.EventType, fmt.Sprintf("priority %d, shard %d, %d bytes", row.Priority, row.Shard, row.Bytes))
		line("  created", clock(row.CreatedAt)+due(row.DeliverAt))
	}
	for _, f := range r.Failed {
		line("", "")
		line("FAILED", f.EventType, clock(f.FailedAt), f.Reason)
		line("  " + f.Detail)
	}
	if r.Workflow != nil {
		r.Workflow.print(line)
	}
	if len(r.Ledger) > 0 {
		line("", "")
		line("LEDGER", "recipient", "state", "generation", "SES message ID", "last error")
	}
	for _, e := range r.Ledger {
		line("  "+e.Step, e.Recipient, e.State, fmt.Sprint(e.Generation), e.ResultID, e.ErrorClass)
	}
	for _, s := range r.Stops {
		line("", "")
		line("SENDING HAS STOPPED", s.Class, s.Scope, clock(s.Since), s.By)
		line("  " + s.Text)
	}
	return t.Flush()
}

func (w *Workflow) print(line func(...string)) {
	line("", "")
	line("WORKFLOW", w.EventType, w.Status, w.State)
	line("  run", w.RunID)
	line("  started", clock(w.StartedAt)+due(w.DueAt))
	if w.ClosedAt != nil {
		line("  closed", clock(*w.ClosedAt))
	}
	if w.URL != "" {
		line("  web UI", w.URL)
	}
	for _, s := range w.Steps {
		attempt, trouble := "", s.Error
		if s.Attempt > 0 {
			attempt = fmt.Sprintf("attempt %d", s.Attempt)
		}
		if s.Class != "" {
			trouble = strings.TrimSuffix(s.Class+": "+trouble, ": ")
		}
		if s.NextAt != nil {
			trouble += "; next " + clock(*s.NextAt)
		}
		line("  "+clock(s.At), s.What, s.Outcome, attempt, trouble)
	}
	if w.Details != "" {
		line("")
		line(w.Details)
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") }

func due(at *time.Time) string {
	if at == nil {
		return ""
	}
	return ", due " + clock(*at)
}
