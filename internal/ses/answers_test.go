package ses

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/sesstandin"
)

// standin is the stand-in behind a Mailer.
type standin struct {
	*sesstandin.Server
	mailer *Mailer
}

func newStandin(t *testing.T) standin {
	t.Helper()
	s, url := standIn(t)
	return standin{s, mailerAt(t, url)}
}

func mailerAt(t *testing.T, url string) *Mailer {
	t.Helper()
	return newMailer(t, Config{From: "Example <mail@example.com>", Endpoint: url, Timeout: time.Second})
}

var aMail = mailTo("", "first.user@example.com")

func (s standin) fault(t *testing.T, f sesstandin.Fault) {
	t.Helper()
	s.ClearFaults()
	if _, err := s.Inject(f); err != nil {
		t.Fatal(err)
	}
}

// check sends a mail and compares, and makes sure that no text repeats an address.
func check(t *testing.T, m *Mailer, want activities.Answer) {
	t.Helper()
	got := m.Send(t.Context(), aMail)
	if strings.Contains(got.Text, "@") || want.Verdict != activities.VerdictSent && got.Text == "" {
		t.Errorf("text %q", got.Text)
	}
	if want.Text == "" {
		got.Text = ""
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Every line of the table, with every code of it and the code's other form, as the SDK decodes it.
func TestEveryLineOfTheTable(t *testing.T) {
	s := newStandin(t)
	for _, l := range table {
		codes := l.codes
		if len(codes) == 0 {
			codes = []string{"MessageRejected", "SomethingNew"}
		}
		for _, code := range codes {
			for _, suffix := range []string{"", "Exception"} {
				f := sesstandin.APIError{Code: code + suffix, Message: "It says first.user@example.com. " + strings.ToUpper(l.text), Status: l.status}
				if l.status != 0 {
					f.Code = "SomethingNew" + suffix
				}
				t.Run(f.Code+" "+l.text, func(t *testing.T) {
					s.fault(t, sesstandin.Fault{Error: &f})
					check(t, s.mailer, l.answer)
				})
			}
		}
	}
	if n := len(s.Mails()); n != 0 {
		t.Errorf("%d mails were accepted", n)
	}
}

// What the table does not know.
func TestOtherAnswers(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    sesstandin.Fault
		verdict  activities.Verdict
		class    string
		accepted int
	}{
		{"another 4xx", sesstandin.Fault{Error: &sesstandin.APIError{Code: "SomethingNew", Status: 418}}, activities.VerdictLater, "refused", 0},
		{"500", sesstandin.Fault{Error: &sesstandin.APIError{Code: "InternalFailure", Status: 500}}, activities.VerdictUnknown, "server_error", 0},
		{"502", sesstandin.Fault{Error: &sesstandin.APIError{Code: "SomethingNew", Status: 502}}, activities.VerdictUnknown, "server_error", 0},
		{"504", sesstandin.Fault{Error: &sesstandin.APIError{Code: "SomethingNew", Status: 504}}, activities.VerdictUnknown, "server_error", 0},
		{"a 200 that cannot be read", sesstandin.Fault{Garbage: true}, activities.VerdictUnknown, "unreadable_answer", 1},
		{"cut off before", sesstandin.Fault{DropBefore: true}, activities.VerdictUnknown, "cut_off", 0},
		{"cut off after", sesstandin.Fault{DropAfter: true}, activities.VerdictUnknown, "cut_off", 1},
		{"no answer, not accepted", sesstandin.Fault{Delay: sesstandin.Duration(time.Minute)}, activities.VerdictUnknown, "no_answer", 0},
		{"no answer, accepted", sesstandin.Fault{AnswerDelay: sesstandin.Duration(time.Minute)}, activities.VerdictUnknown, "no_answer", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStandin(t)
			s.fault(t, c.fault)
			check(t, s.mailer, activities.Answer{Verdict: c.verdict, Class: c.class})
			if n := len(s.Mails()); n != c.accepted {
				t.Errorf("%d mails accepted, want %d", n, c.accepted)
			}
			for action, n := range s.Requests() {
				if n != 1 {
					t.Errorf("%d requests of %s: a retry can be a second mail", n, action)
				}
			}
		})
	}
}

// HTML of a proxy in between, in the place of SES's XML.
func TestAnswersOfAProxy(t *testing.T) {
	for status, want := range map[int]activities.Answer{
		http.StatusBadGateway:         {Verdict: activities.VerdictUnknown, Class: "server_error"},
		http.StatusServiceUnavailable: {Verdict: activities.VerdictLater, Class: "unavailable"},
		http.StatusForbidden:          {Verdict: activities.VerdictStop, Class: "credentials", Scope: activities.ScopeCredentials},
		http.StatusOK:                 {Verdict: activities.VerdictUnknown, Class: "unreadable_answer"},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				w.Write([]byte("<html><body>proxy of first.user@example.com</body></html>")) // a client that has left is the test's own
			}))
			defer server.Close()
			check(t, mailerAt(t, server.URL), want)
		})
	}
}

func TestNothingLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"refused": closed, "no such host": "http://no-such-host.invalid", "no TLS there": "https://" + newPlain(t)} {
		t.Run(name, func(t *testing.T) {
			check(t, mailerAt(t, url), activities.Answer{Verdict: activities.VerdictLater, Class: "not_connected"})
		})
	}
}

// newPlain is the address of a server without TLS.
func newPlain(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestNoCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none",
	} {
		t.Setenv(name, value)
	}
	m, err := New(t.Context(), Config{From: "mail@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, activities.Answer{Verdict: activities.VerdictStop, Class: "credentials", Scope: activities.ScopeCredentials})
}

// A mail that SES would refuse for its size does not leave, and the error says so.
func TestAMailThatIsTooLarge(t *testing.T) {
	s, url := standIn(t)
	m := newMailer(t, Config{From: "mail@example.com", Endpoint: url, Timeout: time.Minute})
	mail := aMail
	for size, verdict := range map[int]activities.Verdict{7 << 20: activities.VerdictSent, 11 << 20: activities.VerdictNever} {
		mail.HTML = "<p>" + strings.Repeat("0123456 ", size/8) + "</p>"
		a := m.Send(t.Context(), mail)
		if a.Verdict != verdict || verdict == activities.VerdictNever && (a.Class != "not_composed" || !strings.Contains(a.Text, "SES takes 10485760")) {
			t.Errorf("%d bytes: %+v", size, a)
		}
	}
	if n := len(s.Mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}
