package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
)

// Migrate, relay, worker, enqueue: the mail comes once, and both end in order on SIGTERM.
func TestMessageBecomesOneMail(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		w := newWorld(t, s)
		if out := w.must("migrate"); !strings.Contains(out, "the tables are at version") {
			t.Errorf("migrate says %q", out)
		}
		relay, worker := w.start("oncepost", "relay"), w.start("oncepost", "worker")
		relay.await("relay running")
		worker.await("worker running")

		id := w.must("enqueue", "welcome", "--payload", welcome("first.user@example.com"), "--id", "welcome:c_1")
		if id != "welcome:c_1" {
			t.Errorf("enqueue printed %q", id)
		}
		mail := w.mails(1)[0]
		if mail.MessageID != id || mail.EventType != "welcome" || strings.Join(mail.To, " ") != "first.user@example.com" {
			t.Errorf("mail of %q (%s) to %v", mail.MessageID, mail.EventType, mail.To)
		}
		if !strings.Contains(mail.Subject, "Example Ltd") || !strings.Contains(mail.From, "mail@example.com") {
			t.Errorf("subject %q, from %q", mail.Subject, mail.From)
		}
		w.onceEach([]string{id})
		w.explains(id)

		// The same message again, when its row is gone: Temporal knows it. The one behind it shows that it was looked at.
		w.must("enqueue", "welcome", "--payload", welcome("first.user@example.com"), "--id", id)
		w.awaitEmpty()
		next := w.must("enqueue", "welcome", "--payload", welcome("next.user@example.com"))
		w.mails(2)
		w.onceEach([]string{id, next})

		relay.stop(syscall.SIGTERM)
		worker.stop(syscall.SIGTERM)
		if mails := w.mails(2); len(mails) != 2 {
			t.Errorf("%d mails for 2 messages", len(mails))
		}
	})
}

func TestRelayWithWorker(t *testing.T) {
	w := one(t)
	w.must("migrate")
	both := w.start("oncepost", "relay", "--with-worker")
	both.await("relay running")
	ids := w.enqueue(20)
	if mails := w.mails(20); len(mails) != 20 {
		t.Errorf("%d mails for 20 messages", len(mails))
	}
	w.onceEach(ids)
	both.stop(syscall.SIGTERM)
}

// The bound on sends in flight holds for the relay's own worker too: each mail begins after the one before is answered.
func TestRelayWithWorkerBoundsItsSends(t *testing.T) {
	const answered = 300 * time.Millisecond
	w := one(t)
	w.must("migrate")
	addFault(t, w.ses, fmt.Sprintf(`{"answer_delay": %q}`, answered))
	both := w.start("oncepost", "relay", "--with-worker", "--max-sends", "1")
	both.await("relay running")
	w.enqueue(5)
	mails := w.mails(5)
	slices.SortFunc(mails, func(a, b sesstandin.Mail) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	for i := range mails[1:] {
		if pause := mails[i+1].ReceivedAt.Sub(mails[i].ReceivedAt); pause < answered {
			t.Errorf("mail %d came %s after the one before, which was answered after %s", i+1, pause, answered)
		}
	}
	both.stop(syscall.SIGTERM)
}

// explains checks what `oncepost explain` says of a message that was sent, to a person and to a program.
func (w *world) explains(id string) {
	w.Helper()
	text := w.must("explain", id, "--ui", "http://localhost:8233")
	for _, part := range []string{"WORKFLOW", "mail 1 of 1", "LEDGER", "http://localhost:8233/namespaces/"} {
		if !strings.Contains(text, part) {
			w.Errorf("explain does not say %q", part)
		}
	}
	var report struct {
		MessageID string `json:"message_id"`
		Ledger    []struct {
			SES string `json:"ses_message_id"`
		} `json:"ledger"`
	}
	if err := json.Unmarshal([]byte(w.must("explain", id, "--json")), &report); err != nil || report.MessageID != id || len(report.Ledger) != 1 || report.Ledger[0].SES == "" {
		w.Errorf("explain --json: %+v, %v", report, err)
	}
	fails(w.T, w.env, 1, []string{"nothing is known of message absent"}, "oncepost", "explain", "absent")
}
