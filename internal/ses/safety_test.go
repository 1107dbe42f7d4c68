package ses

import (
	"math"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/sesstandin"
)

func safe(t *testing.T, cfg Safety) (*sesstandin.Server, *Mailer) {
	t.Helper()
	s, url := standIn(t)
	return s, newMailer(t, Config{From: "mail@example.com", Endpoint: url, Safety: cfg})
}

// Mails go to the allowed addresses and domains, however they are spelt, and to nobody else.
func TestOnlyTheAllowedGetMails(t *testing.T) {
	s, m := safe(t, Safety{Allow: []string{"First.User@Example.COM", " Staging.example.com ", "bücher.example.com", "xn--3e0b707e.kr", "o@exämple.org"}})
	for _, to := range []string{
		"first.user@example.com", "FIRST.USER@EXAMPLE.COM", "anybody@staging.example.com", "anybody@STAGING.Example.com",
		"a@BÜCHER.example.com", "a@xn--bcher-kva.example.com", "a@XN--BCHER-KVA.example.com", "a@한국.kr", "o@xn--exmple-cua.org", "o@EXÄMPLE.org",
	} {
		sent(t, m, mailTo("", to))
	}
	allowed := len(s.Mails())
	if allowed != 10 {
		t.Errorf("%d mails left", allowed)
	}
	for _, to := range []string{
		"second.user@example.com", "first.user@example.com.evil.test", "first.user@sub.example.com", "a@sub.staging.example.com", "a@notstaging.example.com",
		"xfirst.user@example.com", "p@exämple.org", "staging.example.com@evil.test", "first.user+x@example.com",
	} {
		a := m.Send(t.Context(), mailTo("", to))
		if a.Verdict != activities.VerdictNever || a.Class != "not_allowed" || !strings.Contains(a.Text, "ONCEPOST_MAIL_ALLOW") {
			t.Errorf("%s: %+v", to, a)
		}
		if strings.Contains(a.Text, "@") {
			t.Errorf("the text holds an address: %s", a.Text)
		}
	}
	if n := len(s.Mails()); n != allowed {
		t.Errorf("%d mails left that must not", n-allowed)
	}
	if a := m.Send(t.Context(), mailTo("", "no address")); a.Class != "not_composed" {
		t.Errorf("%+v", a)
	}
}

// A redirected mail goes to the one address alone, and names who was meant.
func TestRedirectedMails(t *testing.T) {
	s, m := safe(t, Safety{RedirectTo: "Staging <staging@bücher.example.com>"})
	in := mailTo("김철수", "first.user@exämple.com")
	in.Subject = "환영합니다"
	sent(t, m, in)
	got := s.Mails()[0]
	if len(got.To) != 1 || got.To[0] != "staging@xn--bcher-kva.example.com" || header(t, got, "To").Name != "Staging" {
		t.Errorf("to %v", got.To)
	}
	if want := "[to first.user@xn--exmple-cua.com] 환영합니다"; got.Subject != want {
		t.Errorf("subject %q, want %q", got.Subject, want)
	}
	if a := header(t, got, IntendedFor); a.Address != "first.user@xn--exmple-cua.com" || a.Name != "김철수" {
		t.Errorf("intended for %+v", a)
	}
	if got.MessageID != "m_1" || got.Text != "Hello." {
		t.Errorf("%+v", got)
	}
	// What production would refuse is refused here too.
	if a := m.Send(t.Context(), mailTo("a\r\nBcc: x@evil.test", "first.user@example.com")); a.Verdict != activities.VerdictNever {
		t.Errorf("%+v", a)
	}
	if n := len(s.Mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// A dry run makes no request, needs nothing of AWS, and refuses what would be refused.
func TestADryRun(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	s, m := safe(t, Safety{DryRun: true, Allow: []string{"example.com"}})
	if a := m.Send(t.Context(), aMail); a != (activities.Answer{Verdict: activities.VerdictSent, ProviderID: DryRunID}) {
		t.Errorf("%+v", a)
	}
	for to, class := range map[string]string{"a@evil.test": "not_allowed", "jürgen@example.com": "not_composed"} {
		if a := m.Send(t.Context(), mailTo("", to)); a.Class != class {
			t.Errorf("%+v", a)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("requests %v", s.Requests())
	}
	m = newMailer(t, Config{From: "mail@example.com", Safety: Safety{DryRun: true}}) // no region
	if q, err := m.Quota(t.Context()); err != nil || q.PerSecond >= 0 || !math.IsInf(q.LeftToday(), 1) || m.Credentials(t.Context()) == "" {
		t.Errorf("quota %+v, %v; credentials %q", q, err, m.Credentials(t.Context()))
	}
}

// What would allow nobody, or somebody else than was meant, is refused at the start.
func TestWrongSafety(t *testing.T) {
	for says, cfg := range map[string]Safety{
		"ONCEPOST_MAIL_ALLOW: entry 2 of 2": {Allow: []string{"example.com", ""}},
		"ONCEPOST_MAIL_ALLOW: entry 1 of 1": {Allow: []string{"*.example.com"}},
		"not a full name":                   {Allow: []string{"com"}},
		"no @ or nothing":                   {Allow: []string{"@example.com"}},
		"ONCEPOST_MAIL_REDIRECT_TO":         {RedirectTo: "staging"},
		"no mail could leave":               {RedirectTo: "staging@example.com", Allow: []string{"example.org"}},
	} {
		_, err := New(t.Context(), Config{From: "mail@example.com", Endpoint: "http://127.0.0.1:1", Safety: cfg})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", cfg, err, says)
		}
	}
	newMailer(t, Config{From: "mail@example.com", Endpoint: "http://127.0.0.1:1", Safety: Safety{RedirectTo: "staging@EXAMPLE.com", Allow: []string{"example.com"}}})
}
