package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// A person lists what has failed, looks at it, retries some and discards the rest.
func TestFailedListShowRetryDiscard(t *testing.T) {
	w := one(t)
	failed := func(code int, words []string, args ...string) string {
		t.Helper()
		got, out := run(t, w.env, "oncepost", append([]string{"failed"}, args...)...)
		for _, word := range words {
			if got != code || !strings.Contains(out, word) {
				t.Errorf("failed %v: exit code %d, want %d and %q: %s", args, got, code, word, out)
			}
		}
		return out
	}
	if code, out := run(t, w.env, "oncepost", "migrate"); code != 0 {
		t.Fatal(out)
	}
	failed(0, []string{"nothing has failed"}, "list")
	for _, id := range []string{"", "é", "a\nb", strings.Repeat("a", 1001)} {
		for _, of := range [][]string{{"show", id}, {"retry", id}, {"discard", id, "--by", "someone", "--why", "wrong"}} {
			failed(2, []string{"is no message ID: they are 1 to 128 printable"}, of...)
		}
	}
	for _, id := range []string{"twice", "twice", "once"} {
		testdb.Exec(t, w.schema.DB, `INSERT INTO outbox_failed (message_id, event_type, payload, priority, reason, detail)
 VALUES (?, 'welcome', '{"email":"a@example.com"}', 3, 'never_starts', 'refused for a@example.com')`, id)
	}
	var list struct {
		Failed []struct {
			MessageID string `json:"message_id"`
		}
		More bool
	}
	if out := failed(0, nil, "list", "--json", "--limit", "2"); json.Unmarshal([]byte(out), &list) != nil || len(list.Failed) != 2 || !list.More {
		t.Errorf("%+v: %s", list, out)
	}
	if out := failed(0, []string{"never_starts", "once", "There are more"}, "list", "--limit", "1"); strings.Contains(out, "@") {
		t.Error(out)
	}
	if out := failed(0, []string{"refused for (address)", "25 bytes"}, "show", "once"); strings.Contains(out, "@") {
		t.Error(out)
	}
	failed(0, []string{`{"email":"a@example.com"}`}, "show", "once", "--payload")
	failed(1, []string{"has not failed"}, "show", "absent")
	failed(1, []string{"choose one with --failed-id"}, "retry", "twice")
	without := slices.Concat(w.env, []string{"TEMPORAL_ADDRESS=127.0.0.1:1"})
	for code, kind := range []string{"row", ""} { // a row can be looked at while Temporal is away, and the error says how
		if got, out := run(t, without, "oncepost", "failed", "show", "once", "--kind", kind); got != code || !strings.Contains(strings.ToLower(out), "row") {
			t.Errorf("exit code %d, want %d: %s", got, code, out)
		}
	}
	if got, out := run(t, without, "oncepost", "failed", "list"); got != 1 || !strings.Contains(out, "--kind row") {
		t.Errorf("exit code %d: %s", got, out)
	}
	failed(0, []string{"once is back in outbox_messages", "failed row requeued"}, "retry", "once")
	failed(0, []string{"twice is discarded", "by=someone", "why=wrong"}, "discard", "twice", "--failed-id", "1", "--by", "someone", "--why", "wrong")
	failed(1, []string{"there is nothing to delete"}, "discard", "once", "--by", "someone", "--why", "wrong")
	failed(0, []string{"twice is back in outbox_messages"}, "retry", "--all", "--yes", "--type", "welcome")
	if n := testdb.Value[int](t, w.schema.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != 2 {
		t.Errorf("%d messages wait, want 2", n)
	}
}
