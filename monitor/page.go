package monitor

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"ago": ago, "count": Count.String,
	"clock": func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"full":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
}).Parse(pageText))

// page is what the status page shows.
type page struct {
	State      *State
	Conditions []shownCondition
	Workflows  []shownNumber
	Queues     []shownQueue
	Sends      []shownSend
	Owners     []shownOwner
	InFlight   int64
	Quota      string
	Curve      template.HTML
	Self       string
}

type shownCondition struct {
	Condition
	Do string
}

// shownNumber is a number of workflows, with the list behind it in the web UI.
type shownNumber struct {
	What, Number, Link string
}

type shownQueue struct {
	Queue
	Link string
}

type shownSend struct {
	Name string
	N    int64
}

type shownOwner struct{ Owner, Shards string }

// newPage arranges a state. ui is the address of Temporal's web UI, or "".
func newPage(s *State, h *history, t Thresholds, ui string) page {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	p := page{State: s, Curve: curve(h.last(), s.At), Self: fmt.Sprintf("%s:%d", host, os.Getpid()), Quota: s.Quota.String()}
	for _, c := range s.All() {
		p.Conditions = append(p.Conditions, shownCondition{c, kinds[c.Name].do})
	}
	lists := ListsAt(s.At, t)
	for _, n := range []struct {
		what, query string
		n           *int64
	}{
		{"workflows running", lists.Running, s.Workflows.Running},
		{"parked, wait for a person", lists.Parked, s.Workflows.Parked},
		{"stuck", lists.Stuck, s.Workflows.Stuck},
		{"workflow tasks failing", lists.TasksFail, s.Workflows.TasksFail},
		{"failed in the last hour", lists.Failed, s.Workflows.Failed},
	} {
		p.Workflows = append(p.Workflows, shownNumber{n.what, number(n.n), link(ui, s.Temporal.Name, "workflows?query="+url.QueryEscape(n.query))})
	}
	for _, q := range s.Queues {
		p.Queues = append(p.Queues, shownQueue{q, link(ui, s.Temporal.Name, "task-queues/"+url.PathEscape(q.Name))})
	}
	for _, outcome := range outcomes {
		p.Sends = append(p.Sends, shownSend{outcome, s.Sends[outcome]})
	}
	for _, process := range s.Processes {
		if process.Alive && process.Relay != nil {
			p.InFlight += process.Relay.InFlight
		}
	}
	p.Owners = owners(s.Shards)
	return p
}

// All are the conditions of this process and, beside them, those that others have told people of.
func (s *State) All() []Condition {
	all := slices.Clone(s.Conditions)
	for _, r := range s.Raised {
		here := slices.ContainsFunc(all, func(c Condition) bool { return c.key() == r.key() })
		if !here && (!r.event || !r.over) {
			all = append(all, Condition{Name: r.Name, Subject: r.Subject, Title: kinds[r.Name].title, Detail: r.Detail, For: s.At.Sub(r.Since).Seconds()})
		}
	}
	return all
}

func link(ui, namespace, path string) string {
	if ui == "" {
		return ""
	}
	return strings.TrimSuffix(ui, "/") + "/namespaces/" + url.PathEscape(namespace) + "/" + path
}

// owners groups the shards by who reads them, those that nobody does first.
func owners(shards []Shard) (all []shownOwner) {
	by := map[string][]int{}
	for _, s := range shards {
		by[s.Owner] = append(by[s.Owner], s.Shard)
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, shownOwner{name, ranges(by[name])})
	}
	return all
}

// ranges writes 0 1 2 5 as 0–2, 5.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// String writes an estimate with ≈.
func (c Count) String() string {
	if c.Exact {
		return fmt.Sprint(c.Rows)
	}
	return fmt.Sprintf("≈%d", c.Rows)
}

// String is the quota of the day in words.
func (q *Quota) String() string {
	switch {
	case q == nil:
		return "not known"
	case q.PerDay < 0:
		return fmt.Sprintf("%.0f sent, no limit", q.SentLast)
	}
	return fmt.Sprintf("%.0f of %.0f", q.SentLast, q.PerDay)
}

// ago writes seconds for a person.
func ago(of any) string {
	var s float64
	switch v := of.(type) {
	case float64:
		s = v
	case *float64:
		s = *v
	}
	switch d := time.Duration(s * float64(time.Second)); {
	case math.IsInf(s, 0) || math.IsNaN(s):
		return "?"
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", s)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", s/86400)
}
