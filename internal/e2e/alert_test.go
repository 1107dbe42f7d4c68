package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// paused is what SES says when it has paused the account.
const paused = `{"error": {"code": "MessageRejected", "message": "Sending paused for this account."}}`

// alertEnv sends alerts to a stand-in of their own.
func alertEnv(t *testing.T) (env []string, ses string) {
	t.Helper()
	ses = startSES(t)
	return append(baseEnv(t), "ONCEPOST_ALERT_FROM=alerts@example.com", "ONCEPOST_ALERT_TO=first.admin@example.com", "ONCEPOST_ALERT_ENDPOINT="+ses), ses
}

func newWebhook(t *testing.T, status int) (url string, posts *atomic.Value) {
	t.Helper()
	posts = &atomic.Value{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		posts.Store(string(b))
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, posts
}

// The exit code is 0 where somebody was reached, and only there. Scenario 46 is in it.
func TestAlertExitCodes(t *testing.T) {
	env, ses := alertEnv(t)
	call := []string{"alert", "--title", "backup failed", "--detail", "-", "--field", "host=db 1", "--key", "backup"}
	p := startWith(t, strings.NewReader("disk full\nfor long\n"), env, "oncepost", call...)
	if code := p.exit(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.out)
	}
	if m := mailsAt(t, ses, 1)[0]; m.Subject != "[alert] backup failed" || !strings.Contains(m.Text, "disk full") || !strings.Contains(m.Text, "host: db 1") {
		t.Errorf("%q: %q", m.Subject, m.Text)
	}

	addFault(t, ses, paused)
	fails(t, env, 1, []string{"level=ERROR msg=alert title=\"the account is paused\"", "sending is paused", "reached nobody"},
		"oncepost", "alert", "--title", "the account is paused")
	url, posts := newWebhook(t, http.StatusOK)
	fails(t, append(env, "ONCEPOST_ALERT_WEBHOOK="+url), 0, []string{"level=ERROR msg=alert title=\"the account is paused\"", "sending is paused", "the webhook carried the alert"},
		"oncepost", "alert", "--title", "the account is paused")
	var got struct{ Title, Text string }
	if s, _ := posts.Load().(string); json.Unmarshal([]byte(s), &got) != nil || got.Title != "the account is paused" {
		t.Errorf("the webhook got %v", posts.Load())
	}
	url, _ = newWebhook(t, http.StatusBadGateway)
	fails(t, append(env, "ONCEPOST_ALERT_WEBHOOK="+url), 1, []string{"HTTP status 502", "reached nobody"}, "oncepost", "alert", "--title", "x")

	fails(t, baseEnv(t), 2, []string{"msg=alert title=x", "ONCEPOST_ALERT_TO"}, "oncepost", "alert", "--title", "x")
	fails(t, env, 2, []string{"--title"}, "oncepost", "alert")
}

// Standard input that never ends does not hold an alert up.
func TestAlertWithAnInputThatHangs(t *testing.T) {
	t.Parallel() // it waits, most of the time
	env, ses := alertEnv(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("so far"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if code := startWith(t, r, env, "oncepost", "alert", "--title", "x", "--detail", "-").exit(); code != 0 || time.Since(began) > 15*time.Second {
		t.Errorf("exit code %d after %s", code, time.Since(began))
	}
	if m := mailsAt(t, ses, 1)[0]; !strings.Contains(m.Text, "so far") || !strings.Contains(m.Text, "did not end") {
		t.Errorf("%q", m.Text)
	}
}

func TestAlertHelpIsWhole(t *testing.T) {
	code, out := run(t, baseEnv(t), "oncepost", "alert", "--help")
	for _, word := range []string{"--title", "--detail", "--key", "--field", "ONCEPOST_ALERT_FROM", "ONCEPOST_ALERT_TO", "ONCEPOST_ALERT_AWS_PROFILE", "ONCEPOST_ALERT_AWS_REGION", "ONCEPOST_ALERT_WEBHOOK", "Exit codes"} {
		if !strings.Contains(out, word) {
			t.Errorf("exit code %d, no %s: %s", code, word, out)
		}
	}
}

// TestAParkedMailAlerts: a held mail whose answer is lost is told by log and alert.
func TestAParkedMailAlerts(t *testing.T) {
	t.Parallel() // it waits, most of the time
	for _, args := range [][]string{{"worker"}, {"relay", "--with-worker"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			w := one(t)
			w.must("migrate")
			env, ses := alertEnv(t)
			w.env = append(w.env, env[len(env)-3:]...)
			addFault(t, w.ses, `{"drop_after": true, "times": 1}`)
			p := w.start("oncepost", args...)
			if args[0] == "worker" {
				w.start("oncepost", "relay").await("relay running")
			}
			w.must("enqueue", "payment_failed", "--payload", paymentFailed, "--id", "hold")
			m := mailsAt(t, ses, 1)[0]
			if !strings.Contains(m.Subject, "payment_failed is parked") || !strings.Contains(m.Text, "message_id: hold") || !strings.Contains(m.Text, "oncepost resolve") {
				t.Errorf("%q: %q", m.Subject, m.Text)
			}
			p.await(`msg="parked: a person must say what has happened"`) // the line stays
		})
	}
}

// TestAPausedAccountAlerts: scenario 46, with the account of the mails and that of the alerts paused. The webhook and the error log
// carry the alert, no message is spent, and after it is put right a person need not wait for the trial.
func TestAPausedAccountAlerts(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := one(t)
	w.must("migrate")
	env, ses := alertEnv(t)
	hook, posts := newWebhook(t, http.StatusOK)
	w.env = append(append(w.env, env[len(env)-3:]...), "ONCEPOST_ALERT_WEBHOOK="+hook)
	addFault(t, ses, paused)
	addFault(t, w.ses, paused)
	p := w.start("oncepost", "relay", "--with-worker")
	ids := w.enqueue(3)
	p.await(`msg="sending has stopped; no mail is lost"`)
	p.await(`msg=alert title="oncepost: sending has stopped (account_paused)"`)
	until(t, "the webhook has it", func() bool {
		s, _ := posts.Load().(string)
		return strings.Contains(s, "oncepost: sending has stopped (account_paused)")
	})
	clearFaults(t, w.ses)
	w.must("sending", "resume")
	w.mails(len(ids))
	w.onceEach(ids)
}

// The quota of the day is used up: scenario 22's alert, through an account of the alerts' own.
func TestAUsedUpQuotaAlerts(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := one(t)
	w.must("migrate")
	env, ses := alertEnv(t)
	w.env = append(w.env, env[len(env)-3:]...)
	addFault(t, w.ses, `{"preset": "daily-quota"}`)
	p := w.start("oncepost", "relay", "--with-worker")
	ids := w.enqueue(3)
	p.await(`msg="sending has stopped; no mail is lost"`)
	if m := mailsAt(t, ses, 1)[0]; !strings.Contains(m.Subject, "sending has stopped (daily_quota)") {
		t.Errorf("subject %q", m.Subject)
	}
	clearFaults(t, w.ses)
	w.must("sending", "resume")
	w.mails(len(ids))
	w.onceEach(ids)
}

// TestSafetyOutsideProduction: flags and variables reach the worker, alone and with a relay, and it says so.
func TestSafetyOutsideProduction(t *testing.T) {
	for name, c := range map[string]struct {
		env, says string
		holds     func(w *world)
	}{
		"redirect": {"ONCEPOST_MAIL_REDIRECT_TO=staging@example.com", "REDIRECTED", func(w *world) {
			for _, m := range w.mails(2) {
				if m.To[0] != "staging@example.com" || !strings.HasPrefix(m.Subject, "[to ") {
					w.Errorf("to %v: %s", m.To, m.Subject)
				}
			}
		}},
		"allow": {"ONCEPOST_MAIL_ALLOW=c0.example.com,c2.example.com", "RESTRICTED", func(w *world) {
			if err := w.temporal.GetWorkflow(w.Context(), "other", "").Get(w.Context(), nil); err == nil || !strings.Contains(err.Error(), "not_allowed") {
				w.Errorf("the workflow ended with %v", err)
			}
			if m := w.mails(1); len(m) != 1 || m[0].To[0] != "first.user@c0.example.com" {
				w.Errorf("%d mails", len(m))
			}
		}},
		"dry run": {"ONCEPOST_DRY_RUN=true", "DRY RUN", func(w *world) {
			var ids int
			until(w.T, "both are in the ledger", func() bool {
				if err := w.schema.DB.QueryRowContext(w.Context(), "SELECT COUNT(*) FROM sends WHERE result_id = 'dry-run'").Scan(&ids); err != nil {
					w.Fatal(err)
				}
				return ids == 2
			})
			var requests map[string]int
			if get(w.T, w.ses+"/_standin/requests", &requests); len(requests) != 0 {
				w.Errorf("requests %v", requests)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := one(t)
			w.must("migrate")
			w.env = append(w.env, c.env)
			p := w.start("oncepost", "relay", "--with-worker")
			if out := p.await(c.says); strings.Contains(out, "@example.com") {
				t.Errorf("an address in the log: %s", out)
			}
			w.enqueue(1)
			w.must("enqueue", "welcome", "--payload", welcome("first.user@other.example.com"), "--id", "other")
			w.awaitEmpty() // so that both have their workflows
			c.holds(w)
			if out := p.out.String(); strings.Contains(out, "@other") || strings.Contains(out, "staging@") {
				t.Errorf("an address in the log: %s", out)
			}
		})
	}
}
