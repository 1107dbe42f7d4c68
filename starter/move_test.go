package starter

import (
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

// newTestDeleter is a deleter of a relay that does not run, on a session of its own.
func newTestDeleter(t *testing.T, r *Relay) (d *deleter, cut func()) {
	t.Helper()
	conn, err := r.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cut = func() {
		if err := locks.End(conn); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(cut)
	state, kind, err := prepare(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return &deleter{relay: r, rows: r.table.NewDeleter(conn, kind), server: state}, cut
}

// TestAMoveWhoseAnswerWasLostIsReported: it was committed, and the row is gone; nobody else could tell.
func TestAMoveWhoseAnswerWasLostIsReported(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conds := &conditions{}
		cfg := quick()
		cfg.Report = conds.report
		r, err := New(openDSN(t, s.DSN), newRecorder(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, s, message("moved"), message("discarded"))
		key := func(id string) (k outbox.Key) {
			k.MessageID = id
			err := s.DB.QueryRowContext(t.Context(), "SELECT shard, created_at FROM outbox_messages WHERE message_id = ?", id).
				Scan(&k.Shard, &k.CreatedAt)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		moved := failing{key: key("moved"), reason: outbox.ReasonNeverStarts, detail: "no"}
		discarded := failing{key: key("discarded"), reason: outbox.ReasonNeverStarts, detail: "no"}

		before, cut := newTestDeleter(t, r)
		works, _ := newTestDeleter(t, r)
		if _, err := works.rows.MoveToFailed(t.Context(), moved.key, moved.reason, moved.detail); err != nil {
			t.Fatal(err) // committed, and then the connection was cut
		}
		cut()
		if err := before.move(t.Context(), []failing{moved}); err == nil {
			t.Fatal("a move on a session that is cut did not end the term")
		}
		if n, _ := conds.find(CondFailed, true); n != 0 {
			t.Fatal("reported before anybody knows")
		}
		// An operator discards the other one before it could be moved: that is no failed message.
		testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id = 'discarded'")
		r.finds.fail(discarded)
		_, again, _ := r.finds.take(outbox.MaxDelete, 0)
		if len(again) != 2 {
			t.Fatalf("%d moves are to be done, want 2", len(again))
		}
		if err := works.move(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		n, cond := conds.find(CondFailed, true)
		if n != 1 || cond.MessageID != "moved" || r.stats.failed.Load() != 1 {
			t.Errorf("reported %d times, last %+v; %d counted", n, cond, r.stats.failed.Load())
		}
		if _, left, _ := r.finds.take(outbox.MaxDelete, 0); len(left) != 0 || len(failedRows(t, s)) != 1 {
			t.Errorf("%d moves are left, outbox_failed: %v", len(left), failedRows(t, s))
		}
	})
}
