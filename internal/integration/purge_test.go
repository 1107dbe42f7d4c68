package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/testdb"
)

// The ledger's rows outlive their workflows. While Temporal has one, open or closed, it may be reset: its rows stay, however old.
func TestOldSendsArePurged(t *testing.T) {
	eachWorld(t, func(w *world) {
		enqueue(t, w.s, welcome("closed"), paymentFailedRemind("open", "1h"))
		testdb.Eventually(t, "two mails", func() bool { return w.mails() == 2 })
		if err := w.c.GetWorkflow(t.Context(), "closed", "").Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, w.s.DB, "UPDATE sends SET created_at = NOW(6) - INTERVAL 400 DAY, expires_at = NOW(6) - INTERVAL 400 DAY")
		testdb.Exec(t, w.s.DB, `INSERT INTO sends (message_id, step, recipient, content, generation, state, token, created_at, expires_at)
 SELECT 'retention-is-over', step, recipient, content, generation, state, token, created_at, expires_at FROM sends WHERE message_id = 'closed'`)
		keeper := serve.Keeper{Client: w.c, Namespace: w.namespace}
		if d, err := keeper.Retention(t.Context()); err != nil || d != 24*time.Hour {
			t.Errorf("retention %s, %v", d, err)
		}
		n, err := ledger.Purge{DB: w.s.DB, Keeper: keeper}.Round(t.Context())
		if err != nil || n != 1 {
			t.Errorf("%d rows purged, %v", n, err)
		}
		if left := testdb.Column[string](t, w.s.DB, "SELECT message_id FROM sends ORDER BY message_id"); !slices.Equal(left, []string{"closed", "open"}) {
			t.Errorf("left %v", left)
		}
		w.reset("closed")
		if r := w.result("closed"); w.mails() != 2 {
			t.Errorf("after a reset: %+v; %d mails", r, w.mails())
		}
	})
}
