package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

var at = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func mail(to string, after time.Duration) sesstandin.Mail {
	return sesstandin.Mail{To: []string{to}, Subject: "Welcome", ReceivedAt: at.Add(after)}
}

// Whatever comes out other than it should is seen, each fault by its own words.
func TestVerdict(t *testing.T) {
	one := expectation{to: []string{"a@example.com"}}
	two := expectation{to: []string{"b@example.com", "a@example.com"}}
	due := expectation{to: []string{"a@example.com"}, due: at.Add(time.Second)}
	nothing := expectation{nothing: true}
	good := []sesstandin.Mail{mail("a@example.com", 0)}
	for name, c := range map[string]struct {
		e     expectation
		s     sight
		ahead time.Duration
		want  string // "" is no fault
	}{
		"one mail":              {e: one, s: sight{workflow: completed, mails: good}},
		"two mails":             {e: two, s: sight{workflow: completed, mails: append(good, mail("b@example.com", 0))}},
		"rolled back":           {e: nothing},
		"in time":               {e: due, s: sight{workflow: completed, mails: []sesstandin.Mail{mail("a@example.com", time.Second)}}},
		"in time, by its clock": {e: due, s: sight{workflow: completed, mails: good}, ahead: time.Second},

		"too early":               {e: due, s: sight{workflow: completed, mails: []sesstandin.Mail{mail("a@example.com", 999*time.Millisecond)}}, want: "1ms too early"},
		"too early, by its clock": {e: due, s: sight{workflow: completed, mails: []sesstandin.Mail{mail("a@example.com", time.Second)}}, ahead: -time.Second, want: "too early"},
		"no mail":                 {e: one, s: sight{workflow: completed}, want: "mails to nobody"},
		"doubled":                 {e: one, s: sight{workflow: completed, mails: append(good, good...)}, want: "mails to a@example.com, a@example.com"},
		"one admin twice":         {e: two, s: sight{workflow: completed, mails: append(good, good...)}, want: "not to a@example.com, b@example.com"},
		"failed":                  {e: one, s: sight{workflow: "Failed", mails: good}, want: "workflow Failed"},
		"never started":           {e: one, s: sight{waiting: 1}, want: "still in outbox_messages"},
		"moved away":              {e: one, s: sight{failed: 1}, want: "in outbox_failed"},
		"started, rolled back":    {e: nothing, s: sight{workflow: completed}, want: "not none"},
		"mailed, rolled back":     {e: nothing, s: sight{mails: good}, want: "not to nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(c.e.faults(c.s, c.ahead), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("faults %q, want %q", got, c.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	all := []expectation{
		{id: "m_1", eventType: "welcome", text: "1 mail", to: []string{"a@example.com"}},
		{id: "m_2", eventType: "payment_failed", text: "2 mails", to: []string{"a@example.com", "b@example.com"}},
	}
	seen := []sight{
		{workflow: completed, mails: []sesstandin.Mail{mail("a@example.com", 0)}},
		{workflow: completed, mails: []sesstandin.Mail{mail("a@example.com", 0)}},
	}
	var out strings.Builder
	r := report(&out, all, seen, 0)
	if r.OK() || r.Rows != 2 || r.Right != 1 || r.Example != "m_2" {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"Completed; 1 mail: Welcome", "WRONG: mails to a@example.com, not to", "1 of 2 came out"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	if (Result{}).OK() {
		t.Error("a demo of nothing is no success")
	}
}

// Letters that take two cells push nothing out of line.
func TestTableAligns(t *testing.T) {
	var out strings.Builder
	printTable(&out, [][]string{{"ab", "|"}, {"한국", "|"}, {"", "|"}})
	want := "  ab    |\n  한국  |\n        |\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
