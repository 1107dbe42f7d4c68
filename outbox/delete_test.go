package outbox

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

func TestDeleteTakesExactlyItsKeys(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		var ms []Message
		for i := range MaxDelete {
			ms = append(ms, Message{EventType: "welcome", Payload: i, Priority: 1 + i%5})
		}
		enqueue(t, s.DB, ms...)
		r := newRelay(t, s.DB)
		gone := r.keys(t)
		kept := enqueue(t, s.DB, message("kept"), message("kept-too"))
		deleted, err := r.Delete(t.Context(), gone)
		if err != nil || !reflect.DeepEqual(deleted, Deleted{}) {
			t.Fatalf("%+v, %v", deleted, err)
		}
		if rows := r.byID(t); len(rows) != 2 || rows[kept[0]].MessageID == "" || rows[kept[1]].MessageID == "" {
			t.Errorf("left: %v", rows)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id >= '~'"); n != Shards {
			t.Errorf("%d sentinels left", n)
		}
		if deleted, err = r.Delete(t.Context(), gone); err != nil || len(deleted.Locked) != 0 || deleted.Server.ID == "" {
			t.Errorf("again: %+v, %v", deleted, err)
		}
	})
}

// IDs travel to the server in JSON: those that JSON escapes must arrive as they are.
func TestDeleteOfAwkwardIDs(t *testing.T) {
	ids := []string{`a"b`, `a\b`, `\`, `\\`, `"`, `\"`, `a\u0041`, `a\n`, `[1]`, `{"a":1}`, `'`, `a'b`, "`", `%s%d`, `$[1]`, `/*x*/`, `--`, `}`, `!`}
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, id := range ids {
			enqueue(t, s.DB, message(id))
		}
		enqueue(t, s.DB, message("aA"), message("kept")) // what `a\u0041` would be if it were read as an escape
		r := newRelay(t, s.DB)
		var keys []Key
		for _, key := range r.keys(t) {
			if key.MessageID != "aA" && key.MessageID != "kept" {
				keys = append(keys, key)
			}
		}
		if len(keys) != len(ids) {
			t.Fatalf("%d keys of %d", len(keys), len(ids))
		}
		if deleted, err := r.Delete(t.Context(), keys); err != nil || len(deleted.Locked) != 0 {
			t.Fatalf("%+v, %v", deleted, err)
		}
		left := r.keys(t)
		if len(left) != 2 {
			t.Errorf("left: %v", left)
		}
	})
}

// A late delete of a message that was deleted and enqueued again meanwhile must not remove the new one.
func TestDeleteLeavesAReenqueuedRow(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, message("natural"), message("other"))
		r := newRelay(t, s.DB)
		old := r.keys(t)
		testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id = 'natural'")
		enqueue(t, s.DB, message("natural"))
		deleted, err := r.Delete(t.Context(), old)
		if err != nil || len(deleted.Locked) != 0 {
			t.Errorf("%+v, %v", deleted, err)
		}
		left := r.keys(t)
		if len(left) != 1 || left[0].MessageID != "natural" || slices.Contains(old, left[0]) {
			t.Errorf("left %v, old %v", left, old)
		}
		for _, key := range old {
			moved, err := r.MoveToFailed(t.Context(), key, ReasonNeverStarts, "late")
			if moved || err != nil {
				t.Errorf("moved %v: %v, %v", key, moved, err)
			}
		}
	})
}

// A producer enqueues a pending natural key again and keeps its REPEATABLE READ transaction open: the server holds a lock on
// that row for it. No other producer waits, nor does the relay. (scenario 37)
func TestDeleteDoesNotWaitForAProducersLock(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		shard := shardOf("natural")
		around := idsIn(shard, 6)
		for _, id := range append([]string{"natural", "other"}, around[:3]...) {
			enqueue(t, s.DB, message(id))
		}
		r := newRelay(t, s.DB)
		testdb.Exec(t, r.conn, "SET innodb_lock_wait_timeout = 1")
		keys := r.keys(t)
		producer := testdb.Conn(t, s.DB, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION")
		if _, err := Enqueue(t.Context(), producer, message("natural")); err == nil {
			t.Fatal("a pending key was accepted again")
		}
		begun := time.Now()
		deleted, err := r.Delete(within(t, 900*time.Millisecond), keys)
		if err != nil {
			t.Fatalf("after %s: %v", time.Since(begun), err)
		}
		if len(deleted.Locked) != 1 || deleted.Locked[0].MessageID != "natural" || !slices.Contains(keys, deleted.Locked[0]) {
			t.Errorf("locked: %v", deleted.Locked)
		}
		if left := r.keys(t); len(left) != 1 || left[0].MessageID != "natural" {
			t.Errorf("left: %v", left)
		}
		if moved, err := r.MoveToFailed(within(t, 900*time.Millisecond), deleted.Locked[0], ReasonNeverStarts, ""); moved || err != nil {
			t.Errorf("moved=%v, %v", moved, err)
		}
		others := testdb.Conn(t, s.DB, "SET innodb_lock_wait_timeout = 1")
		for _, id := range append(around[3:], "natura", "natural-", "aaaa", "zzzz") {
			if _, err := Enqueue(within(t, 900*time.Millisecond), others, message(id)); err != nil {
				t.Errorf("another producer, %s: %v", id, err)
			}
		}
		testdb.Exec(t, producer, "ROLLBACK")
		if deleted, err = r.Delete(t.Context(), deleted.Locked); err != nil || len(deleted.Locked) != 0 {
			t.Errorf("after the producer's end: %+v, %v", deleted, err)
		}
	})
}

// Uncommitted INSERTs in every shard, in a nearly empty table: a delete that scanned would meet them.
func TestDeleteDoesNotMeetOpenInserts(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, message("a"), message("b"))
		r := newRelay(t, s.DB)
		testdb.Exec(t, r.conn, "SET innodb_lock_wait_timeout = 1")
		keys := r.keys(t)
		tx := begin(t, s.DB)
		var open []Message
		for i := range 500 {
			open = append(open, message(fmt.Sprintf("%c%03d", "0az"[i%3], i)))
		}
		if _, err := EnqueueMany(t.Context(), tx, open); err != nil {
			t.Fatal(err)
		}
		deleted, err := r.Delete(within(t, 900*time.Millisecond), keys)
		if err != nil || len(deleted.Locked) != 0 {
			t.Fatalf("%+v, %v", deleted, err)
		}
		commit(t, tx)
		if n := pending(t, s.DB); n != 500 {
			t.Errorf("%d messages, want 500", n)
		}
	})
}

// The relay's own open delete keeps no producer from inserting between the rows that it holds, nor where it looked for a row
// that another relay has deleted: in READ COMMITTED a look-up that finds nothing locks no gap.
func TestProducersDoNotWaitForADelete(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		ids := idsIn(4, 9)
		for i := 0; i < 9; i += 2 {
			enqueue(t, s.DB, message(ids[i]))
		}
		r := newRelay(t, s.DB)
		keys := r.keys(t)
		testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id IN (?, ?)", ids[0], ids[4])
		tx, err := r.conn.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		taken, err := r.find(t.Context(), tx, keys, r.lockClause())
		if err != nil || len(taken) != 3 {
			t.Fatalf("%v, %v", taken, err)
		}
		if n, err := r.deleteFree(t.Context(), keys); err != nil || n != 3 {
			t.Fatalf("%d deleted, %v", n, err)
		}
		producer := testdb.Conn(t, s.DB, "SET innodb_lock_wait_timeout = 1")
		for _, i := range []int{0, 1, 3, 4, 5, 7} {
			if _, err := Enqueue(within(t, 900*time.Millisecond), producer, message(ids[i])); err != nil {
				t.Errorf("%s: %v", ids[i], err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	})
}
