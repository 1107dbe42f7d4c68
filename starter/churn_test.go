package starter

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// TestProducersSeeNoLockErrors: 16 producers insert, in the server's default isolation level, while four relays work.
func TestProducersSeeNoLockErrors(t *testing.T) { // scenario 17
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		for range 4 {
			startRelay(t, s, rec, quick())
		}
		const producers, each = 16, 40
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() {
				for i := range each {
					if err := produce(t.Context(), s, p, i); err != nil {
						t.Errorf("producer %d: %v", p, err)
						return
					}
				}
			})
		}
		wg.Wait()
		want := producers * each * 3
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == want })
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
	})
}

// produce commits three messages in one transaction, one of them with a natural key that it has tried twice, and rolls
// another back.
func produce(ctx context.Context, s *testdb.Schema, p, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, commit := range []bool{false, true} {
		tx, err := s.DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		natural := message(fmt.Sprintf("natural:%d:%d", p, i))
		ms := []outbox.Message{natural, {EventType: "welcome", Payload: i}, {EventType: "welcome", Payload: i, Priority: 1}}
		if _, err := outbox.EnqueueMany(ctx, tx, ms); err != nil {
			return err
		}
		if _, err := outbox.Enqueue(ctx, tx, natural); err == nil {
			return fmt.Errorf("%s was accepted twice", natural.ID)
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}
