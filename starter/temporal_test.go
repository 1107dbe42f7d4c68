package starter

import (
	"context"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// TestHeadersThatAreNoJSONNeverReachTemporal: there is no client that could be asked.
func TestHeadersThatAreNoJSONNeverReachTemporal(t *testing.T) {
	temporal := NewTemporal(nil, TemporalConfig{})
	for _, headers := range []string{`{"a":1.}`, `{"a":1`, `{'a':1}`, "{\"a\":\"\x01\"}", ""} {
		r := row(1, "a")
		r.Headers = []byte(headers)
		if o := temporal.Start(t.Context(), &r, 0); o.Class != Never || !o.Certain || o.Reason == "" {
			t.Errorf("%q: %+v, want never, for certain", headers, o)
		}
	}
}

// TestWhatIsCertainlyBadMovesAtOnce: nothing else has started that could show that the message is to blame, and many at once
// are no sign of a wrong configuration.
func TestWhatIsCertainlyBadMovesAtOnce(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		temporal := NewTemporal(nil, TemporalConfig{}) // a start that asks for a client would crash
		rec := newRecorder()
		rec.answer = func(ctx context.Context, row *outbox.Row, _ int) Outcome { return temporal.Start(ctx, row, 0) }
		const n = 2 * refusalsToClose
		enqueue(t, s, messages("bad", n)...)
		for _, statement := range []string{
			"ALTER TABLE outbox_messages DROP CONSTRAINT outbox_headers_are_a_json_object", // MariaDB lets this pass, MySQL does not
			`UPDATE outbox_messages SET headers = '{"a":1.}' WHERE message_id < '~'`,
		} {
			if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		relay := startRelay(t, s, rec, quick())
		eventually(t, "all in outbox_failed", func() bool { return len(failedRows(t, s)) == n })
		for id, reason := range failedRows(t, s) {
			if reason != outbox.ReasonNeverStarts {
				t.Errorf("%s: %s", id, reason)
			}
		}
		rec.set(func(r *recorder) {
			for id, n := range r.attempts {
				if n != 1 {
					t.Errorf("%s: %d attempts", id, n)
				}
			}
		})
		relay.conds.await(t, CondFailed, true)
		if n, c := relay.conds.find(CondMisconfigured, true); n != 0 {
			t.Errorf("reported: %+v", c)
		}
		if rec.total() != 0 || pending(t, s) != 0 {
			t.Errorf("%d have started, %d rows are left", rec.total(), pending(t, s))
		}
	})
}
