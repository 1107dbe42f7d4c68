package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// A person stops sending, sees it, and resumes; a worker with a rate of its own obeys.
func TestSendingStopStatusResume(t *testing.T) {
	w := one(t)
	sending := func(words []string, args ...string) string {
		t.Helper()
		code, out := run(t, w.env, "oncepost", append([]string{"sending"}, args...)...)
		for _, word := range words {
			if code != 0 || !strings.Contains(out, word) {
				t.Errorf("sending %v: exit code %d, without %q: %s", args, code, word, out)
			}
		}
		return out
	}
	if code, out := run(t, w.env, "oncepost", "migrate"); code != 0 {
		t.Fatal(out)
	}
	sending([]string{"sending is not stopped"}, "status")
	sending([]string{"sending is stopped"}, "stop", "--by", "someone", "--why", "wrong prices")
	sending([]string{"SCOPE", "all", "person", "someone", "wrong prices", "oncepost sending resume"}, "status")
	var status struct {
		Stops []struct{ Scope, Class, By, Cause string }
	}
	if out := sending(nil, "status", "--json"); json.Unmarshal([]byte(out), &status) != nil || len(status.Stops) != 1 || status.Stops[0].By != "someone" {
		t.Errorf("%+v: %s", status, out)
	}
	both := w.start("oncepost", "relay", "--with-worker", "--send-rate", "7")
	both.await("sending has stopped")
	sending([]string{"ended the stop of all (person: wrong prices)"}, "resume")
	both.await("sending goes on")
	both.await("the rate of sends is set")
	sending([]string{"sending was not stopped"}, "resume")
	if n := testdb.Value[int](t, w.schema.DB, "SELECT COUNT(*) FROM sending_stops"); n != 0 {
		t.Errorf("%d stops", n)
	}
}
