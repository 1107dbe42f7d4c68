package e2e

import (
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// A person looks at delayed messages, sends one now, and cancels the others by a query.
func TestOrdersFromTheShell(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := newWorld(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	w.must("migrate")
	order := []string{"--by", "ann", "--why", "the customer asks"}
	for _, id := range []string{"first", "second", "third"} {
		testdb.Exec(t, w.schema.DB, `INSERT INTO outbox_messages (message_id, event_type, payload, deliver_at)
 VALUES (?, 'welcome', '{"company_id":"c","company_name":"C","email":"c@example.com"}', TIMESTAMPADD(HOUR, 20, NOW(6)))`, id)
	}
	w.start("oncepost", "relay")
	w.awaitEmpty()
	// Nobody has begun with it: Temporal's own description answers, without a worker.
	if out := w.must("state", "first"); !strings.HasPrefix(out, "first: scheduled until 20") {
		t.Errorf("state: %s", out)
	}
	w.start("oncepost", "worker")
	fails(t, w.env, 1, []string{"first: not resolved", "nothing is parked"}, "oncepost", append([]string{"resolve", "first", "sent"}, order...)...)
	if out := w.must("state", "first", "--json"); !strings.Contains(out, `{"message_id":"first","state":"scheduled","until":"20`) {
		t.Errorf("state of one that was woken: %s", out)
	}
	if out := w.must(append([]string{"send-now", "first"}, order...)...); out != "first waits no more" {
		t.Errorf("send-now: %s", out)
	}
	w.mails(1)
	testdb.Eventually(t, "it has completed", func() bool { return w.must("state", "first") == "first: completed" })
	fails(t, w.env, 1, []string{"first: no running workflow", "1 of 1 not done"}, "oncepost", append([]string{"cancel-send", "first"}, order...)...)
	byQuery := append([]string{"cancel-send", "--query", "OncepostState = 'scheduled'"}, order...)
	fails(t, w.env, 2, []string{"--query needs --yes where nobody can be asked"}, "oncepost", byQuery...)
	fails(t, w.env, 2, []string{"no visibility query"}, "oncepost", "state", "--query", "nonsense")
	cancelled := ""
	testdb.Eventually(t, "both are cancelled", func() bool { // what is listed lags behind
		cancelled += w.must(append(byQuery, "--yes")...)
		return strings.Contains(cancelled, "no running workflow fits")
	})
	for _, id := range []string{"second", "third"} {
		if !strings.Contains(cancelled, id+" is cancelled") || w.must("state", id) != id+": completed" {
			t.Errorf("%s: %s", id, cancelled)
		}
	}
	w.mails(1)
}
