package integration

import (
	"errors"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

// TestHeadersThatOneServerLetsPass: MariaDB's JSON_VALID takes 1. for a number. Such a message fails at once, although
// nothing else has started, and Temporal never hears of it.
func TestHeadersThatOneServerLetsPass(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		c := dial(t, temporal.FrontendAddr(), "default")
		_, conds, _ := runRelay(t, s.DSN, c, "default", starter.Config{})
		_, err := s.DB.ExecContext(t.Context(),
			`INSERT INTO outbox_messages (message_id, event_type, payload, headers) VALUES ('bad', 'welcome', '{}', '{"a":1.}')`)
		if s.Flavour == mysqlserver.MySQL {
			if err == nil || !strings.Contains(err.Error(), "outbox_headers_are_a_json_object") {
				t.Errorf("MySQL refuses them with %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		cond := conds.await(t, starter.CondFailed)
		if cond.MessageID != "bad" || !strings.Contains(cond.Detail, "headers") {
			t.Errorf("report: %+v", cond)
		}
		if pending(t, s) != 0 || failed(t, s) != 1 {
			t.Errorf("%d rows wait and %d failed, want 0 and 1", pending(t, s), failed(t, s))
		}
		var reason string
		if err := s.DB.QueryRowContext(t.Context(), "SELECT reason FROM outbox_failed").Scan(&reason); err != nil || reason != outbox.ReasonNeverStarts {
			t.Errorf("reason %q, %v", reason, err)
		}
		var unknown *serviceerror.NotFound
		if _, err := c.DescribeWorkflowExecution(t.Context(), "bad", ""); !errors.As(err, &unknown) {
			t.Errorf("Temporal knows of it: %v", err)
		}
	})
}
