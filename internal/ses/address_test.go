package ses

import (
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/templates"
)

// standIn starts an SES, and returns its URL.
func standIn(t *testing.T) (*sesstandin.Server, string) {
	t.Helper()
	s, err := sesstandin.New(sesstandin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return s, server.URL
}

func newMailer(t *testing.T, cfg Config) *Mailer {
	t.Helper()
	m, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mailTo(name, email string) activities.Mail {
	return activities.Mail{
		MessageID: "m_1", EventType: "welcome", To: activities.Address{Email: email, Name: name},
		Content: templates.Content{Subject: "Welcome", Text: "Hello.", HTML: "<p>Hello.</p>"},
	}
}

// sent sends a mail that must be accepted.
func sent(t *testing.T, m *Mailer, in activities.Mail) {
	t.Helper()
	if a := m.Send(t.Context(), in); a.Verdict != activities.VerdictSent {
		t.Fatalf("%+v", a)
	}
}

// header is an address header of a mail as it stands on the wire, parsed.
func header(t *testing.T, m sesstandin.Mail, name string) mail.Address {
	t.Helper()
	msg, err := mail.ReadMessage(strings.NewReader(string(m.Raw)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := mail.ParseAddress(msg.Header.Get(name))
	if err != nil {
		t.Fatalf("%s: %q: %v", name, msg.Header.Get(name), err)
	}
	return *a
}

// A name arrives as it was given, whoever's it is.
func TestDisplayNames(t *testing.T) {
	standin, url := standIn(t)
	long := strings.Repeat("long  name ", 20)
	for _, name := range []string{
		"", "Kim", `Kim "CJ" Lee`, `AC\DC`, `ends in a \`, `\"`, "Lee, Kim", "a@b.example.com", "O'Brien (Ops) <ops>", "김철수",
		"Żółć 👩‍👩‍👧‍👦", strings.Repeat("김철수 ", 40), "two  spaces", " around ", "=?utf-8?q?x?=", long, long + "x",
	} {
		t.Run(name, func(t *testing.T) {
			own := (&mail.Address{Name: name, Address: "mail@example.com"}).String()
			before := len(standin.Mails())
			sent(t, newMailer(t, Config{From: own, ReplyTo: own, Endpoint: url}), mailTo(name, "first.user@example.com"))
			all := standin.Mails()
			m := all[len(all)-1]
			if len(all) != before+1 || m.Text != "Hello." {
				t.Errorf("mail %+v", m)
			}
			for field, want := range map[string]mail.Address{
				"To": {Name: name, Address: "first.user@example.com"}, "From": {Name: name, Address: "mail@example.com"},
				"Reply-To": {Name: name, Address: "mail@example.com"},
			} {
				if got := header(t, m, field); got != want {
					t.Errorf("%s is %q, want %q", field, got, want)
				}
			}
		})
	}
}

// A subject arrives as it was given, also one that looks encoded.
func TestSubjects(t *testing.T) {
	standin, url := standIn(t)
	m := newMailer(t, Config{From: "mail@example.com", Endpoint: url})
	for i, subject := range []string{
		"Welcome", "김철수 👩‍👩‍👧‍👦", "two  spaces", "=?utf-8?q?x?=", "A =?utf-8?q?a=0D=0ABcc:_x@evil.test?= b", strings.Repeat("=? 긴 ", 60), "=?",
	} {
		in := mailTo("", "first.user@example.com")
		in.Subject = subject
		sent(t, m, in)
		if got := standin.Mails()[i].Subject; got != subject {
			t.Errorf("subject %q, want %q", got, subject)
		}
	}
}

// No fold changes a name or a subject, wherever two spaces stand.
func TestFoldsAreSafe(t *testing.T) {
	m := newMailer(t, Config{From: "mail@example.com", Endpoint: "http://127.0.0.1:1"})
	for n := range 100 {
		text := strings.Repeat("x", n+1) + " y   z"
		in := mailTo(text, "first.user@example.com")
		in.Subject = text
		raw, _, err := m.compose(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := header(t, sesstandin.Mail{Raw: raw}, "To").Name; got != text {
			t.Errorf("%d: name %q, want %q", n, got, text)
		}
		msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if got := msg.Header.Get("Subject"); got != text {
			t.Errorf("%d: subject %q, want %q", n, got, text)
		}
	}
}

// What SES or MIME cannot take is refused for good before a request is made, in words and without the address.
func TestRecipientsThatCannotBeSentTo(t *testing.T) {
	standin, url := standIn(t)
	m := newMailer(t, Config{From: "mail@example.com", Endpoint: url})
	for _, c := range []struct{ name, email, says string }{
		{"", "jürgen@secret.example.com", "not printable ASCII"},
		{"", "sec ret@example.com", "not printable ASCII"},
		{"", "a\r\nBcc: secret@example.com", "not printable ASCII"},
		{"", "secret\t@example.com", "not printable ASCII"},
		{"", "secret", "no @"},
		{"", "@secret.example.com", "no @"},
		{"", "", "no @"},
		{"", "Secret<secret@example.com", "cannot have"},
		{"", "Secret<secret@example.com>", "domain"},
		{"", `"secret"@example.com`, "cannot have"},
		{"", "secret,b@example.com", "cannot have"},
		{"", "(secret)a@example.com", "cannot have"},
		{"", ".secret@example.com", "cannot have"},
		{"", "secret@localhost", "full name"},
		{"", "secret@[127.0.0.1]", "domain"},
		{"", "secret@example..com", "domain"},
		{"", "secret@example.com.", "domain"},
		{"", "secret@exa_mple.com", "domain"},
		{"", "secret@-example.com", "domain"},
		{"", "secret@한-.kr", "domain"},
		{"", "secret@a.com, b@example.com", "not printable ASCII"},
		{"", strings.Repeat("s", 65) + "@secret.example.com", "longer than 64"},
		{"", "secret@" + strings.Repeat("a", 64) + ".com", "domain"},
		{"sec\tret", "a@example.com", "display name"},
		{"secret\r\nBcc: b@example.com", "a@example.com", "display name"},
		{"secret\u0085", "a@example.com", "display name"},
		{"secret\x00", "a@example.com", "display name"},
	} {
		t.Run(c.name+" "+c.email, func(t *testing.T) {
			a := m.Send(t.Context(), mailTo(c.name, c.email))
			if a.Verdict != activities.VerdictNever || !strings.Contains(a.Text, c.says) {
				t.Fatalf("%+v, want a final answer that says %q", a, c.says)
			}
			if strings.Contains(strings.ToLower(a.Text), "secret") {
				t.Errorf("the text repeats the address: %s", a.Text)
			}
		})
	}
	if n := len(standin.Mails()); n != 0 {
		t.Errorf("%d mails arrived", n)
	}
}

// A domain in another script is sent to as its Punycode, by header and envelope alike.
func TestInternationalDomains(t *testing.T) {
	standin, url := standIn(t)
	m := newMailer(t, Config{From: "Shop <mail@exämple.com>", ReplyTo: "help@한국.kr", Endpoint: url})
	sent(t, m, mailTo("A", "first.user@bücher.example.com"))
	got := standin.Mails()[0]
	if want := "first.user@xn--bcher-kva.example.com"; len(got.To) != 1 || got.To[0] != want || header(t, got, "To").Address != want {
		t.Errorf("to %v", got.To)
	}
	if want := "mail@xn--exmple-cua.com"; got.Source != want || header(t, got, "From").Address != want {
		t.Errorf("from %s", got.Source)
	}
	if got := header(t, got, "Reply-To").Address; got != "help@xn--3e0b707e.kr" {
		t.Errorf("reply to %s", got)
	}
	for _, plain := range []string{"a+b.c@r3---sn.example.com", "A.b@EXAMPLE.com", "o'neil@example.com"} {
		sent(t, m, mailTo("A", plain))
	}
}

// A sender that no mail could go out with is refused at the start.
func TestSendersThatCannotSend(t *testing.T) {
	for from, says := range map[string]string{
		"jürgen@example.com": "ASCII", "mail": "not an address", "": "not an address", "Shop <<mail@example.com>>": "not an address",
		"Shop <mail@localhost>": "full name", `"a b"@example.com`: "ASCII", `"a<b>"@example.com`: "cannot have",
		"=?utf-8?q?Shop=09?= <mail@example.com>": "display name", "Sh\top <mail@exa_mple.com>": "domain",
		"a@example.com, b@example.com": "not an address",
	} {
		t.Run(from, func(t *testing.T) {
			for what, cfg := range map[string]Config{
				"the sender": {From: from}, "the reply-to address": {From: "mail@example.com", ReplyTo: from},
			} {
				if what == "the reply-to address" && from == "" {
					continue // none
				}
				cfg.Endpoint = "http://127.0.0.1:1"
				_, err := New(t.Context(), cfg)
				if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), says) {
					t.Errorf("error %v, want one that says %q and %q", err, what, says)
				}
			}
		})
	}
}
