package starter

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// TestManyBadMessagesHoldNobodyUp: with settings as in production. Good ones behind them start within seconds.
func TestManyBadMessagesHoldNobodyUp(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = func(ctx context.Context, row *outbox.Row, _ int) Outcome {
			sleep(ctx, 5*time.Millisecond)
			if strings.HasPrefix(row.MessageID, "bad") {
				return never("Blob data size exceeds limit.")
			}
			return Outcome{}
		}
		enqueue(t, s, messages("bad", 1000)...)
		relay := startRelay(t, s, rec, Config{})
		relay.conds.await(t, CondMisconfigured, true)
		enqueue(t, s, messages("good", 100)...)
		began := time.Now()
		rec.await(t, "the good ones", func(r *recorder) bool { return len(r.starts) == 100 })
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("they started after %s", d)
		}
	})
}

// TestHalfOfTheFrontendsWrong: no good message is failed for it, however often it meets the wrong one.
func TestHalfOfTheFrontendsWrong(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = func(context.Context, *outbox.Row, int) Outcome {
			if rand.IntN(2) == 0 {
				return never("the frontend is wrong")
			}
			return Outcome{}
		}
		enqueue(t, s, messages("m", 1000)...)
		startRelay(t, s, rec, quick())
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		if failed := failedRows(t, s); len(failed) > 0 {
			t.Errorf("%d good messages were failed", len(failed))
		}
	})
}

// TestANotMovedMessageThatIsGoneIsNoConditionAnyMore: a person has deleted it.
func TestANotMovedMessageThatIsGoneIsNoConditionAnyMore(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "RENAME TABLE outbox_failed TO elsewhere")
		rec := newRecorder()
		rec.answer = func(context.Context, *outbox.Row, int) Outcome { return Outcome{Class: Reused, Reason: "used before"} }
		relay := startRelay(t, s, rec, quick())
		enqueue(t, s, message("x"))
		relay.conds.await(t, CondNotMoved, true)
		testdb.Exec(t, s.DB, "RENAME TABLE elsewhere TO outbox_failed")
		testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id = 'x'")
		relay.conds.await(t, CondNotMoved, false)
	})
}
