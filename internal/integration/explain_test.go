package integration

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/explain"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/workflows"
)

func (w *world) sources() explain.Sources {
	w.t.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: w.s.DSN})
	if err != nil {
		w.t.Fatal(err)
	}
	testdb.CloseAtEnd(w.t, db)
	return explain.Sources{DB: db, Client: w.c, Namespace: w.namespace, UI: "http://localhost:8233/"}
}

// explained waits until the report of a message has all parts, as text and as JSON together, and checks that it names nobody.
func (w *world) explained(s explain.Sources, id string, parts ...string) {
	w.t.Helper()
	var all string
	defer func() {
		if w.t.Failed() {
			w.t.Log(all)
		}
	}()
	testdb.Eventually(w.t, "the report of "+id, func() bool {
		r, err := s.Explain(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Print(&text); err != nil {
			w.t.Fatal(err)
		}
		j, err := json.Marshal(r)
		if err != nil {
			w.t.Fatal(err)
		}
		all = text.String() + string(j)
		for _, part := range parts {
			if !strings.Contains(all, part) {
				return false
			}
		}
		return true
	})
	if strings.Contains(all, "@example.com") || strings.Contains(all, "reregister_url") {
		w.t.Errorf("the report shows what was in the payload:\n%s", all)
	}
}

func TestExplain(t *testing.T) {
	eachWorld(t, func(w *world) {
		s := w.sources()
		var none *explain.NotFoundError
		if _, err := s.Explain(w.t.Context(), "absent"); !errors.As(err, &none) || !strings.Contains(err.Error(), w.namespace) {
			w.t.Errorf("%v", err)
		}

		enqueue(w.t, w.s, welcome("sent"))
		w.explained(s, "sent", "1 of 1 sends in the ledger are done", "mail 1 of 1", `"outcome":"done","attempt":1`, `"state":"done"`, `"ses_message_id":`,
			"http://localhost:8233/namespaces/"+w.namespace+"/workflows/sent/", "completed", "Completed")

		w.fault("throttle", 1)
		enqueue(w.t, w.s, welcome("retrying"))
		w.explained(s, "retrying", "attempt 1 failed (NotSent), and the next one follows", "waits for its next attempt", "throttled", "next 20")

		w.fault("lost-answer", 1)
		enqueue(w.t, w.s, paymentFailed("parked"))
		w.explained(s, "parked", "Parked: a person must say", `"outcome":"unknown","attempt":1,"error_class":"cut_off"`, `"state":"unknown"`, `"error_class":"cut_off"`, "oncepost resolve 'parked' sent|resend")
		w.resolve("parked", workflows.DecisionSent)
		w.explained(s, "parked", "update resolve", "accepted", "resolved", "Completed: 1 of 1")

		enqueue(w.t, w.s, outbox.Message{ID: "invalid", EventType: "welcome", Payload: map[string]any{"email": "a@example.com"}})
		w.explained(s, "invalid", "closed: Failed", "failed for good", "InvalidPayload: ", `"error_class":"InvalidPayload"`)

		enqueue(w.t, w.s, outbox.Message{ID: "nobodys", EventType: "nobodys", Payload: 1})
		w.explained(s, "nobodys", "none knows the event type nobodys", `"failing_workflow_tasks":`)

		at := time.Now().Add(time.Hour)
		enqueue(w.t, w.s, outbox.Message{ID: "later", EventType: "welcome", Payload: welcome("").Payload, DeliverAt: at})
		w.explained(s, "later", "waits until the message is due", ", due "+at.UTC().Format("2006-01-02 15:"))

		testdb.Eventually(w.t, "the first row is gone", func() bool { return pending(w.t, w.s) == 0 })
		enqueue(w.t, w.s, outbox.Message{ID: "sent", EventType: "welcome", Payload: map[string]any{"other": 1}})
		w.explained(s, "sent", "id_reused", "FAILED")
	})
}

// Before any relay has seen it the row is all there is.
func TestExplainOfAWaitingRow(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		w := &world{t: t, s: s, namespace: "waiting-" + string(s.Flavour)}
		if err := temporal.CreateNamespace(t.Context(), w.namespace, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		w.c = dial(t, temporal.FrontendAddr(), w.namespace)
		enqueue(t, s, outbox.Message{ID: "express", EventType: "welcome", Payload: 1, Priority: 1, DeliverAt: time.Now().Add(time.Hour)}, welcome("other"))
		w.explained(w.sources(), "express", "no relay has started its workflow yet", "priority 1, shard ", "ROW", "welcome", ", due ")
		w.explained(w.sources(), "other", "no relay has started its workflow yet", "priority 3")
	})
}
