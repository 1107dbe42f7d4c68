package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

// A large payload with the most recipients becomes as many mails: together they would be far more than Temporal takes.
func TestLargePayloadToFiftyAdmins(t *testing.T) {
	const recipients = 50
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "large", 24*time.Hour)
		box := &mailbox{}
		runWorker(t, s.DSN, c, box)
		runRelay(t, s.DSN, c, ns, starter.Config{})
		admins := make([]map[string]string, recipients)
		for i := range admins {
			admins[i] = map[string]string{"email": fmt.Sprintf("admin%d@example.com", i), "name": fmt.Sprintf("Admin %d", i)}
		}
		payload, err := json.Marshal(map[string]any{
			"remind_after": "0s", "subscription_id": "sub_9", "amount": "12.50", "currency": "EUR", "reregister_url": "https://example.com/card",
			"admins": admins, "extra": strings.Repeat("0123456789", 90<<10),
		})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, s, outbox.Message{ID: "large", EventType: "payment_failed", Payload: json.RawMessage(payload)})
		testdb.Eventually(t, "the start", func() bool { return pending(t, s) == 0 })
		if err := c.GetWorkflow(t.Context(), "large", "").Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		to := map[string]int{}
		box.mu.Lock()
		defer box.mu.Unlock()
		for _, m := range box.mails {
			to[m.To.Email]++
			if !strings.Contains(m.Text, "12.50") {
				t.Errorf("the mail lacks the amount: %s", m.Text)
			}
		}
		if len(to) != recipients || len(box.mails) != recipients {
			t.Errorf("%d mails to %d recipients, want one to each of %d", len(box.mails), len(to), recipients)
		}
	})
}
