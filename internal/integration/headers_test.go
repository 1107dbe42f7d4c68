package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

// TestHeadersThatAreNotClear: MariaDB's JSON_VALID takes 1. for a number, and both servers take one name twice, of which one
// reader would see the first and another the last. Such a message fails at once, although nothing else has started, and
// Temporal never hears of it.
func TestHeadersThatAreNotClear(t *testing.T) { // scenarios 16, 35
	temporal := newTemporal(t, attributes)
	for i, c := range []struct {
		name, headers string
		refusedBy     mysqlserver.Flavour // at the INSERT
		detail        string
	}{
		{"a number that JSON has not", `{"a":1.}`, mysqlserver.MySQL, "headers"},
		{"one name twice", `{"tenant":"a","tenant":"b"}`, "", `the name "tenant" stands twice`},
		{"one name twice in another spelling", `{"tenant":"a","\u0074enant":"b"}`, "", `the name "tenant" stands twice`},
		{"one name twice inside", `{"a":{"b":1,"b":2}}`, "", `the name "b" stands twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			migrated(t, func(t *testing.T, s *testdb.Schema) {
				ns, client := newNamespace(t, temporal, s, fmt.Sprintf("headers-%d", i), 24*time.Hour)
				_, conds, _ := runRelay(t, s.DSN, client, ns, starter.Config{})
				_, err := s.DB.ExecContext(t.Context(),
					`INSERT INTO outbox_messages (message_id, event_type, payload, headers) VALUES ('bad', 'welcome', '{}', ?)`, c.headers)
				if s.Flavour == c.refusedBy {
					if err == nil || !strings.Contains(err.Error(), "outbox_headers_are_a_json_object") {
						t.Errorf("%s refuses them with %v", s.Flavour, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				cond := conds.await(t, starter.CondFailed)
				if cond.MessageID != "bad" || !strings.Contains(cond.Detail, c.detail) {
					t.Errorf("report: %+v", cond)
				}
				if pending(t, s) != 0 || failed(t, s) != 1 {
					t.Errorf("%d rows wait and %d failed, want 0 and 1", pending(t, s), failed(t, s))
				}
				if reason := testdb.Value[string](t, s.DB, "SELECT reason FROM outbox_failed"); reason != outbox.ReasonNeverStarts {
					t.Errorf("reason %q", reason)
				}
				if detail := testdb.Value[string](t, s.DB, "SELECT detail FROM outbox_failed"); !strings.Contains(detail, c.detail) {
					t.Errorf("detail %q, want it to say %q", detail, c.detail)
				}
				var unknown *serviceerror.NotFound
				if _, err := client.DescribeWorkflowExecution(t.Context(), "bad", ""); !errors.As(err, &unknown) {
					t.Errorf("Temporal knows of it: %v", err)
				}
			})
		})
	}
}
