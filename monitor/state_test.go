package monitor

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// insert puts rows into outbox_messages, fast.
func (w *world) insert(n int, prefix string) {
	w.Helper()
	testdb.Exec(w, w.s.DB, fmt.Sprintf(`INSERT INTO outbox_messages (message_id, event_type, payload)
 WITH digits AS (SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)
 SELECT CONCAT('%s', a.d, b.d, c.d, e.d, f.d), 'welcome', '{}' FROM digits a, digits b, digits c, digits e, digits f LIMIT %d`, prefix, n))
}

func (w *world) look() *State {
	w.Helper()
	s, err := Look(context.WithoutCancel(w.Context()), Config{DB: w.s.DB, Client: w.temporal, Namespace: "n", Logger: discard, Thresholds: quick})
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// Rows are counted to 10,000, and estimated above: with statistics that are as old as the table, within a factor of three.
func TestPendingIsCountedAndEstimated(t *testing.T) {
	eachWorld(t, func(w *world) {
		for _, c := range []struct{ add, low, high int }{{0, 0, 0}, {10_000, 10_000, 10_000}, {1, 10_001, 30_003}, {89_999, 33_000, 300_000}} {
			if c.add > 0 {
				w.insert(c.add, fmt.Sprintf("r%d:", c.add))
			}
			p := w.look().Outbox.Pending
			if p.Rows < int64(c.low) || p.Rows > int64(c.high) || p.Exact != (c.high <= exactly) {
				w.Errorf("after %d more rows: %+v", c.add, p)
			}
		}
		if s := (Count{Rows: 12345}).String(); s != "≈12345" {
			w.Error(s)
		}
	})
}

// A row that was committed late is old, and has not waited. (The age is of its INSERT, by the database's clock.)
func TestALateCommitIsOldAndHasNotWaited(t *testing.T) {
	eachWorld(t, func(w *world) {
		watch := w.watch()
		tx, err := w.s.DB.BeginTx(w.Context(), nil)
		if err != nil {
			w.Fatal(err)
		}
		defer tx.Rollback() // after Commit it does nothing
		if _, err := outbox.Enqueue(w.Context(), tx, outbox.Message{EventType: "welcome", Payload: 1}); err != nil {
			w.Fatal(err)
		}
		time.Sleep(2 * soon)
		if err := tx.Commit(); err != nil {
			w.Fatal(err)
		}
		testdb.Eventually(w, "the row is seen", func() bool { return watch.State().Outbox.Oldest >= 2*soon.Seconds() })
		if s := watch.State(); s.Outbox.Waiting > soon.Seconds() {
			w.Errorf("it has waited for %.1f s", s.Outbox.Waiting)
		}
		if s := watch.State(); len(s.Conditions) != 0 {
			w.Errorf("%+v", s.Conditions)
		}
	})
}

// A backlog whose rows each wait is seen although the first ones go again and again; one that goes is not.
func TestABacklogIsSeenByItsEnd(t *testing.T) {
	eachWorld(t, func(w *world) {
		watch := w.watch()
		w.insert(2000, "b:")
		for i := range 40 { // the first rows of every shard go
			testdb.Exec(w, w.s.DB, "DELETE FROM outbox_messages WHERE message_id < '~' ORDER BY message_id LIMIT 30")
			if i%4 == 0 {
				w.insert(100, fmt.Sprintf("n%02d:", i)) // and new ones come at the end
			}
			time.Sleep(soon / 20)
		}
		if s := watch.State(); s.Outbox.Waiting < soon.Seconds() {
			w.Errorf("it has been seen waiting for %.1f s only", s.Outbox.Waiting)
		}
		w.people.await(w.T, CondOldestRow, 1, 0)
		testdb.Exec(w, w.s.DB, "DELETE FROM outbox_messages WHERE message_id < '~'")
		w.people.await(w.T, CondOldestRow, 1, 1)
	})
}

// A table that is locked hides nothing but itself: the look ends in time, and says what it could not read.
func TestALockedTable(t *testing.T) {
	eachWorld(t, func(w *world) {
		conn := testdb.Conn(w, w.s.DB, "LOCK TABLES outbox_messages WRITE")
		s := w.look()
		if !s.Database.OK || s.Outbox.Error == "" || len(s.Processes) == 0 {
			w.Errorf("%+v", s)
		}
		testdb.Exec(w, conn, "UNLOCK TABLES")
		if s := w.look(); !s.Database.OK || s.Outbox.Error != "" {
			w.Errorf("%+v", s)
		}
	})
}

// What processes say is summed up, but only of those that live.
func TestProcessesAreSummedUp(t *testing.T) {
	eachWorld(t, func(w *world) {
		testdb.Eventually(w, "both have written", func() bool { return len(w.look().Processes) == 2 })
		s := w.look()
		if s.Sends["sent"] != 2 || s.Shards[2].Owner == "" || s.Shards[3].Owner != "" || s.serving("oncepost-send") != 1 {
			w.Errorf("%+v", s)
		}
		w.kill(RoleWorker)
		testdb.Eventually(w, "the worker is dead", func() bool {
			s := w.look()
			i := slices.IndexFunc(s.Processes, func(p Process) bool { return p.Role == RoleWorker })
			return i >= 0 && !s.Processes[i].Alive && s.Sends["sent"] == 0
		})
		if names := w.look().All(); len(names) != 1 || names[0].Name != CondNoWorker {
			w.Errorf("%+v", names)
		}
	})
}

// No query goes through the table.
func TestALargeTableIsNoWork(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.insert(100_000, "m:")
		db := testdb.Open(w, w.s.DSN)
		db.SetMaxOpenConns(1) // so that its counts are of one session
		before := rowsRead(w, db)
		if _, err := Look(w.Context(), Config{DB: db, Client: w.temporal, Logger: discard, Thresholds: quick}); err != nil {
			w.Fatal(err)
		}
		if n := rowsRead(w, db) - before; n < exactly || n > exactly+1000 {
			w.Errorf("%d rows were read", n)
		}
	})
}

// rowsRead are the rows that the server has read for the session so far.
func rowsRead(w *world, db *sql.DB) (n int) {
	for _, name := range []string{"Handler_read_next", "Handler_read_prev", "Handler_read_key", "Handler_read_first", "Handler_read_last"} {
		var key string
		var value int
		if err := db.QueryRowContext(w.Context(), "SHOW SESSION STATUS LIKE '"+name+"'").Scan(&key, &value); err != nil {
			w.Fatal(err)
		}
		n += value
	}
	return n
}
