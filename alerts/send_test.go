package alerts

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

func TestAnAlertIsAMail(t *testing.T) {
	w := newWorld(t, nil)
	w.must(Alert{
		Title: "payment taken but the database update failed", Detail: "dial tcp: connection refused\nsecond line",
		Fields: map[string]string{"order": "o_7", "amount": "12.50"}, Key: "payments",
	})
	m := w.last(1)
	if m.Subject != "[alert] payment taken but the database update failed" || m.Source != "alerts@example.com" ||
		!slices.Equal(m.To, []string{to, "second.admin@example.com"}) {
		t.Errorf("%+v", m)
	}
	want := "payment taken but the database update failed\n\ndial tcp: connection refused\nsecond line\n\namount: 12.50\norder: o_7\n\nFrom "
	if text := strings.ReplaceAll(m.Text, "\r\n", "\n"); !strings.HasPrefix(text, want) || !strings.Contains(text, "2030-01-02 03:04:05 UTC") {
		t.Errorf("text %q", text)
	}
	if log := w.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `"level":"ERROR"`) || !strings.Contains(log, "o_7") {
		t.Errorf("log %s", log)
	}
	if n := len(w.hook.posts()); n != 0 {
		t.Errorf("%d posts to the webhook, which is for when SES fails", n)
	}
}

// Scenario 46: the alerts' own account is paused as well. Every other way in which SES fails goes the same way.
func TestSESFailsAndTheWebhookCarries(t *testing.T) {
	for preset, says := range map[string]string{
		"paused": "sending is paused for the account", "credentials": "InvalidClientTokenId", "unverified": "not verified", "reject": "MessageRejected",
		"daily-quota": "quota of the day", "throttle": "rate is exceeded", "unavailable": "ServiceUnavailable", "garbage": "cannot be read",
		"timeout": "in time", "lost-answer": "cannot be reached",
	} {
		t.Run(preset, func(t *testing.T) {
			w := newWorld(t, nil)
			w.preset(preset)
			err := w.fails(Alert{Title: "the account is paused", Detail: "ask first.user@example.com"}, says, "the webhook carried the alert")
			if !err.Reached() || err.By != "webhook" || err.Webhook != nil || err.Mail == nil {
				t.Errorf("%+v", err)
			}
			posts := w.hook.posts()
			if len(posts) != 1 || posts[0]["title"] != "the account is paused" || !strings.Contains(posts[0]["text"].(string), "ask first.user@example.com") {
				t.Errorf("posts %v", posts)
			}
			if log := w.log.String(); !strings.Contains(log, "the account is paused") || !strings.Contains(log, says) {
				t.Errorf("log %s", log)
			}
		})
	}
}

// Nothing is left but the log, and the error says so.
func TestEverythingFails(t *testing.T) {
	w := newWorld(t, nil)
	w.preset("paused")
	w.hook.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	err := w.fails(Alert{Title: "all is down"}, "sending is paused", "HTTP status 500", "reached nobody")
	if err.Reached() {
		t.Errorf("%+v", err)
	}
	if log := w.log.String(); !strings.Contains(log, "all is down") || !strings.Contains(log, "reached nobody") {
		t.Errorf("log %s", log)
	}
}

// What is not 2xx is a failure; a redirect would lose the alert.
func TestWebhookAnswers(t *testing.T) {
	for status, carried := range map[int]bool{200: true, 201: true, 204: true, 302: false, 307: false, 400: false, 404: false, 500: false, 503: false} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.From, c.To = "", nil })
			w.hook.answer = func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					return // 200
				}
				rw.Header().Set("Location", "/elsewhere")
				rw.WriteHeader(status)
			}
			if carried {
				w.must(Alert{Title: "x"})
				return
			}
			w.fails(Alert{Title: "x"}, fmt.Sprint(status), "reached nobody")
		})
	}
}

// A webhook that fails once is asked again.
func TestTheWebhookIsTriedAgain(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.From, c.To = "", nil })
	tries := 0
	w.hook.answer = func(rw http.ResponseWriter, _ *http.Request) {
		if tries++; tries == 1 {
			rw.WriteHeader(http.StatusBadGateway)
		}
	}
	w.must(Alert{Title: "x"})
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
}

// A doubled alert is better than a lost one: SES is asked again, whatever AWS's variables say of the mails.
func TestSESIsTriedAgain(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "any")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
	for name, f := range map[string]sesstandin.Fault{
		"503":       {Error: &sesstandin.APIError{Code: "ServiceUnavailable", Status: 503}},
		"throttled": {Error: &sesstandin.APIError{Code: "Throttling", Message: "Maximum sending rate exceeded."}},
		"cut off":   {DropBefore: true},
		"hangs":     {Delay: sesstandin.Duration(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				t.Setenv("AWS_ENDPOINT_URL_SES", c.Endpoint)
				c.Endpoint, c.Webhook = "", ""
			})
			f.Times = 2
			w.fault(f)
			w.must(Alert{Title: "x"})
			w.last(1)
			if n := w.ses.Requests()["SendRawEmail"]; n != 3 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Send ends within its time when neither SES nor the webhook ever answers, for the first and for who is counted.
func TestTheTimeIsBounded(t *testing.T) {
	for name, ctx := range contexts(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Timeout = time.Second })
			w.preset("timeout")
			leave := make(chan struct{})
			w.hook.answer = func(http.ResponseWriter, *http.Request) { <-leave }
			defer close(leave)
			began := time.Now()
			ended := make(chan error, 2)
			for range 2 {
				go func() { ended <- w.Send(ctx, Alert{Title: "x"}) }()
			}
			for range 2 {
				if err := <-ended; err == nil || !strings.Contains(err.Error(), "mail: SES did not answer in time; webhook: no answer in time") {
					t.Errorf("%v", err)
				}
			}
			if took := time.Since(began); took > 1500*time.Millisecond || len(w.hook.posts()) == 0 {
				t.Errorf("it took %s, and the webhook was asked %d times", took, len(w.hook.posts()))
			}
		})
	}
}

// An alert about a request that was given up leaves all the same.
func TestACancelledContext(t *testing.T) {
	for name, ctx := range contexts(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := w.Send(ctx, Alert{Title: "x"}); err != nil {
				t.Fatal(err)
			}
			w.last(1)
			w.preset("paused")
			if err := w.Send(ctx, Alert{Title: "y"}); err == nil || len(w.hook.posts()) != 1 {
				t.Errorf("%v, %d posts", err, len(w.hook.posts()))
			}
		})
	}
}

func contexts(t *testing.T) map[string]context.Context {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	t.Cleanup(cancelLate)
	return map[string]context.Context{"no deadline": t.Context(), "cancelled": cancelled, "deadline is over": late}
}

// The URL of a webhook that is away is a secret too.
func TestAWebhookThatIsAway(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.From, c.To = "", nil })
	w.hook.Close()
	w.fails(Alert{Title: "x"}, "webhook: it cannot be reached", "reached nobody")
}
