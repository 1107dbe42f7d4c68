package outbox

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMoveToFailedKeepsEverything(t *testing.T) {
	payload := "{\"z\": 9007199254740993,\n \"a\":\"\U0001f469\"} "
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, Message{
			ID: `poison"\`, EventType: "welcome", Payload: []byte(payload), Priority: 2,
			Headers: map[string]string{"tenant": "t1"}, DeliverAt: time.Date(2026, 11, 1, 5, 30, 0, 123456000, time.UTC),
		}, message("good"))
		row := newRelay(t, s.DB).byID(t)[`poison"\`]
		r := newRelay(t, s.DB)
		moved, err := r.MoveToFailed(t.Context(), row.Key, ReasonIDReused, "the reason: \U0001f469")
		if err != nil || !moved {
			t.Fatalf("moved=%v, %v", moved, err)
		}
		var id, eventType, got, headers, deliverAt, created, reason, detail string
		var priority, age int
		err = r.conn.QueryRowContext(t.Context(), `SELECT message_id, event_type, payload, headers, deliver_at, priority, created_at,
 reason, detail, TIMESTAMPDIFF(SECOND, failed_at, NOW(6)) FROM outbox_failed`).
			Scan(&id, &eventType, &got, &headers, &deliverAt, &priority, &created, &reason, &detail, &age)
		if err != nil {
			t.Fatal(err)
		}
		if id != row.MessageID || eventType != "welcome" || got != payload || headers != `{"tenant":"t1"}` || priority != 2 {
			t.Errorf("moved %q %q %q %q %d", id, eventType, got, headers, priority)
		}
		if RFC3339(deliverAt) != row.DeliverAt || created != row.CreatedAt || age < 0 || age > 60 {
			t.Errorf("times %s, %s, %d s; the row had %s, %s", deliverAt, created, age, row.DeliverAt, row.CreatedAt)
		}
		if reason != "id_reused" || detail != "the reason: \U0001f469" {
			t.Errorf("reason %q, %q", reason, detail)
		}
		if left := r.keys(t); len(left) != 1 || left[0].MessageID != "good" {
			t.Errorf("left %v", left)
		}
		if again, err := r.MoveToFailed(t.Context(), row.Key, ReasonIDReused, ""); again || err != nil {
			t.Errorf("again: %v, %v", again, err)
		}
	})
}

// The same ID may fail more than once, and any text of an error fits: a message that cannot be set aside would stay for ever.
func TestMoveToFailedTakesAnyIDAndText(t *testing.T) {
	details := []string{
		"", "first", "cut \xff\xfe in the middle of a character", "a\x00b", strings.Repeat("é\U0001f469", 4000),
		strings.Repeat("\xff", 3000),
	}
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		r := newRelay(t, s.DB)
		for _, detail := range details {
			enqueue(t, s.DB, message("same"))
			if moved, err := r.MoveToFailed(t.Context(), r.keys(t)[0], ReasonNeverStarts, detail); err != nil || !moved {
				t.Errorf("%.20q: moved=%v, %v", detail, moved, err)
			}
			stored := testdb.Value[string](t, r.conn, "SELECT detail FROM outbox_failed ORDER BY failed_id DESC LIMIT 1")
			if !utf8.ValidString(stored) || utf8.RuneCountInString(stored) > maxDetail {
				t.Errorf("%.20q: stored %d characters", detail, utf8.RuneCountInString(stored))
			}
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_failed WHERE message_id = 'same'"); n != len(details) {
			t.Errorf("%d failed messages, want %d", n, len(details))
		}
		if n := pending(t, s.DB); n != 0 {
			t.Errorf("%d messages left", n)
		}
	})
}

// The move is one transaction: where the second half is impossible the first has not happened.
func TestMoveToFailedIsAllOrNothing(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, message("a"))
		r := newRelay(t, s.DB)
		testdb.Exec(t, s.DB, "CREATE TRIGGER refuse_delete BEFORE DELETE ON outbox_messages FOR EACH ROW SIGNAL SQLSTATE '45000'")
		if moved, err := r.MoveToFailed(t.Context(), r.keys(t)[0], ReasonNeverStarts, ""); moved || err == nil {
			t.Errorf("moved=%v, %v", moved, err)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_failed"); n != 0 {
			t.Error("a copy was left in outbox_failed")
		}
		testdb.Exec(t, s.DB, "DROP TRIGGER refuse_delete")
		testdb.Exec(t, s.DB, "CREATE TRIGGER refuse_insert BEFORE INSERT ON outbox_failed FOR EACH ROW SIGNAL SQLSTATE '45000'")
		if moved, err := r.MoveToFailed(t.Context(), r.keys(t)[0], ReasonNeverStarts, ""); moved || err == nil {
			t.Errorf("moved=%v, %v", moved, err)
		}
		if n := pending(t, s.DB); n != 1 {
			t.Error("the message is gone")
		}
		testdb.Exec(t, s.DB, "DROP TRIGGER refuse_insert")
		if moved, err := r.MoveToFailed(t.Context(), r.keys(t)[0], ReasonNeverStarts, ""); !moved || err != nil {
			t.Errorf("the session cannot be used any more: moved=%v, %v", moved, err)
		}
	})
}
