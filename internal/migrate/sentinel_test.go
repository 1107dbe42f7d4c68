package migrate

import (
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// sentinels counts the rows that are sentinels of their own shard.
const sentinels = "SELECT COUNT(*) FROM outbox_messages WHERE message_id = CONCAT('~', LPAD(shard, 2, '0'))"

func TestSentinels(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		if n := testdb.Value[int](t, s.DB, sentinels); n != outbox.Shards {
			t.Fatalf("%d sentinels after migrating, want %d", n, outbox.Shards)
		}
		conn := testdb.Conn(t, s.DB)
		restore := func(want int64) {
			t.Helper()
			missing, err := outbox.Table{}.RestoreSentinels(t.Context(), conn)
			if err != nil || missing != want {
				t.Errorf("restored %d, %v; want %d", missing, err, want)
			}
			if n := testdb.Value[int](t, s.DB, sentinels); n != outbox.Shards {
				t.Errorf("%d sentinels, want %d", n, outbox.Shards)
			}
		}
		restore(0)
		testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE shard IN (0, 31)")
		restore(2)
		testdb.Exec(t, s.DB, "TRUNCATE TABLE outbox_messages")
		restore(outbox.Shards)
		// A producer's own '~' row cannot take the place of one, nor stand beside it.
		_, err := s.DB.ExecContext(t.Context(),
			"INSERT INTO outbox_messages (shard, message_id, event_type, payload) VALUES (1, '~02', 'sentinel', '{}')")
		if err == nil {
			t.Error("a sentinel of another shard was accepted")
		}
	})
}
