package monitor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/schemas"
)

// A table that somebody has locked for long leaves no session behind with each look, and hides neither who lives nor who does not.
func TestALongTableLock(t *testing.T) {
	eachWorld(t, func(w *world) {
		watch := w.watch()
		testdb.Eventually(w, "all is well", func() bool { s := watch.State(); return s != nil && s.Database.OK && s.Outbox.Error == "" })
		conn := testdb.Conn(w, w.s.DB, "LOCK TABLES outbox_messages WRITE")
		testdb.Eventually(w, "the outbox cannot be read", func() bool { s := watch.State(); return s.Database.OK && s.Outbox.Error != "" })
		w.temporal.set(func() { w.relay.ReadAgo = 60 })
		w.people.await(w.T, CondStalled, 1, 0)
		waiting := func() int {
			return testdb.Value[int](w, w.s.DB, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE '%metadata lock%' AND db = ?", w.s.Name)
		}
		for end := time.Now().Add(25 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
			if n := waiting(); n > 3 { // of each look one for its time-out, and the server's
				w.Fatalf("%d sessions wait", n)
			}
		}
		w.temporal.set(func() { w.relay.ReadAgo = 0 })
		testdb.Exec(w, conn, "UNLOCK TABLES")
		w.people.await(w.T, CondStalled, 1, 1)
		if told := w.people.names(); !slices.Equal(told, []string{CondStalled}) {
			w.Errorf("people heard of %q", told)
		}
	})
}

// A database that answers and takes no writes counts as away, and what cannot be agreed on is told all the same.
func TestADatabaseThatTakesNoWrites(t *testing.T) {
	eachWorld(t, func(w *world) {
		refuse := func(table string) {
			testdb.Exec(w, w.s.DB, "CREATE TRIGGER no_"+table+" BEFORE INSERT ON "+table+" FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'disk full'")
		}
		w.watch()
		refuse("ops_conditions")
		w.kill(RoleRelay)
		w.people.await(w.T, CondNoRelay, 1, 0)
		w.begin(RoleRelay)
		w.people.await(w.T, CondNoRelay, 1, 1)
		refuse("processes")
		w.people.await(w.T, CondDatabase, 1, 0)
		testdb.Exec(w, w.s.DB, "DROP TRIGGER no_processes")
		testdb.Exec(w, w.s.DB, "DROP TRIGGER no_ops_conditions")
		w.people.await(w.T, CondDatabase, 1, 1)
	})
}

// The row that a crash has left an hour ago says nothing of a relay that is just being restarted in order; nor does a database whose
// clock was set.
func TestOldRowsRaiseNothingAtOnce(t *testing.T) {
	eachWorld(t, func(w *world) {
		testdb.Exec(w, w.s.DB, "INSERT INTO processes (process_id, role, state, seen_at) VALUES ('crashed', 'relay', '{}', NOW(6) - INTERVAL 10 MINUTE)")
		watch := w.watch()
		testdb.Eventually(w, "all is well", func() bool { s := watch.State(); return s != nil && len(s.Processes) > 2 && len(s.Conditions) == 0 })
		time.Sleep(soon) // it has been well for longer than the threshold
		w.kill(RoleRelay)
		testdb.Exec(w, w.s.DB, "DELETE FROM processes WHERE role = 'relay' AND seen_at > NOW(6) - INTERVAL 5 MINUTE")
		time.Sleep(soon / 3)
		w.begin(RoleRelay)
		testdb.Exec(w, w.s.DB, "UPDATE processes SET seen_at = seen_at - INTERVAL 30 MINUTE") // until each writes its row again
		time.Sleep(soon)
		if told := w.people.names(); len(told) != 0 {
			w.Errorf("people heard of %q", told)
		}
	})
}

// Who begins to watch in the middle of a condition says neither that it is over nor that it has begun.
func TestARestartedWatchGoesOnWithWhatWasTold(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.temporal.set(func() { w.temporal.away = true })
		testdb.Exec(w, w.s.DB, "INSERT INTO ops_conditions (name, detail, teller, told_at) VALUES ('temporal_away', '', 'x', NOW(6))")
		slow := quick
		slow.TemporalAway = time.Hour
		w.watch(func(c *Config) { c.Thresholds = slow })
		time.Sleep(2 * soon)
		if begun, over := w.people.of(CondTemporal); begun+over != 0 {
			w.Errorf("it began %d times and was over %d times", begun, over)
		}
		w.temporal.set(func() { w.temporal.away = false })
		w.people.await(w.T, CondTemporal, 0, 1)
	})
}

// What a worker's absence, or a stop, has left lying gets its threshold to go away.
func TestWhatWasLeftLyingIsNotStuck(t *testing.T) {
	p := newPast(t)
	stuck := Fact{Name: CondStuck, For: 15 * time.Minute, Threshold: 15 * time.Minute}
	p.see(0, nil, stuck)
	p.want(CondStuck) // at the first look: Temporal says for how long
	p = newPast(t)
	p.see(20*time.Minute, nil, silent(CondNoWorker, 0), stuck)
	p.want(CondNoWorker)
	p.see(14*time.Minute, nil, stuck)
	p.want()
	p.see(2*time.Minute, nil, stuck)
	p.want(CondStuck)
}

// A lock that is lost again is told again, when the last time counts no more, and by a watch where the job cannot tell.
func TestALockIsLostAgain(t *testing.T) {
	eachWorld(t, func(w *world) {
		lost := func(tells, want bool) {
			w.Helper()
			if tell, err := NewRecorder(w.s.DB).LockLost(w.Context(), "job/a", "lost", tells); err != nil || tell != want {
				w.Errorf("tell %t, want %t: %v", tell, want, err)
			}
		}
		lost(true, true)
		lost(true, false)
		testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET told_at = NOW(6), telling_ends_at = NULL, holds_until = NOW(6) - INTERVAL 1 DAY")
		lost(true, true)
		testdb.Exec(w, w.s.DB, "DELETE FROM ops_conditions")
		lost(false, false)
		w.watch()
		w.people.await(w.T, CondLockLost, 1, 0)
	})
}

// What people know is not told again because it could not be written down.
func TestToldAndNotNotedIsNotToldAgain(t *testing.T) {
	eachWorld(t, func(w *world) {
		testdb.Exec(w, w.s.DB, "CREATE TRIGGER no_note BEFORE UPDATE ON ops_conditions FOR EACH ROW SET NEW.teller = IF(NEW.told_at IS NULL, NEW.teller, NULL)")
		w.watch()
		w.kill(RoleRelay)
		w.people.await(w.T, CondNoRelay, 1, 0)
		for range 3 {
			testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6)")
			time.Sleep(soon / 2)
		}
		testdb.Exec(w, w.s.DB, "DROP TRIGGER no_note")
		testdb.Exec(w, w.s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6)")
		testdb.Eventually(w, "it is noted", func() bool {
			return testdb.Value[int](w, w.s.DB, "SELECT COUNT(*) FROM ops_conditions WHERE told_at IS NOT NULL") == 1
		})
		w.people.await(w.T, CondNoRelay, 1, 0)
	})
}

// Rows of another version: a worker counts as one all the same, and what can be read of the rest is read.
func TestRowsOfAnotherVersion(t *testing.T) {
	if p := published([]byte(`{"worker": {"task_queues": "all"}, "sees": ["a"], "waiting_seconds": 7}`), RoleWorker); len(p.Worker.TaskQueues) != 2 || len(p.Sees) != 1 || p.Waiting != 7 {
		t.Errorf("%+v", p)
	}
	if p := published([]byte("no JSON"), RoleRelay); p.Relay != nil || p.Worker != nil {
		t.Errorf("%+v", p)
	}
}

// One query that Temporal refuses hides nothing but what it would count. And a text that is no UTF-8 is told.
func TestWhatCannotBeCountedHidesNothingElse(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.temporal.set(func() { w.temporal.refuses = "TemporalReportedProblems"; w.temporal.counts["parked"] = 3 })
		watch := w.watch()
		w.people.await(w.T, CondParked, 1, 0)
		if s := watch.State(); s.Workflows.TasksFail != nil || !s.unknown[CondTasksFail] {
			w.Errorf("%+v", s.Workflows)
		}
		w.temporal.set(func() { w.relay.Conditions = map[string]string{"misconfigured": "caf\xe9"} })
		w.people.await(w.T, CondMisconfigured, 1, 0)
	})
}

// A Temporal that answers and counts nothing, as with its visibility store away, leaves nobody believing that nothing is stuck.
func TestATemporalThatCountsNothing(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.temporal.set(func() { w.temporal.refuses = schemas.AttributeState })
		w.watch()
		w.people.await(w.T, CondUnreadable, 1, 0)
		if s := w.look(); len(s.All()) != 1 || s.All()[0].Subject != "workflows" {
			w.Errorf("a look sees %+v", s.All())
		}
		w.temporal.set(func() { w.temporal.refuses = "" })
		w.people.await(w.T, CondUnreadable, 1, 1)
	})
}

// The dead have no say: neither in what still holds nor in for how long a row has waited.
func TestTheDeadHaveNoSay(t *testing.T) {
	eachWorld(t, func(w *world) {
		testdb.Exec(w, w.s.DB, `INSERT INTO processes (process_id, role, state, seen_at) VALUES
 ('dead', 'watch', '{"sees": ["temporal_away"], "waiting_seconds": 999, "relay": {"conditions": {"misconfigured": "x"}, "read_seconds_ago": 99}}', NOW(6) - INTERVAL 10 MINUTE)`)
		testdb.Exec(w, w.s.DB, "INSERT INTO ops_conditions (name, detail, teller, told_at) VALUES ('temporal_away', '', 'x', NOW(6))")
		w.watch()
		w.people.await(w.T, CondTemporal, 0, 1)
		if told := w.people.names(); !slices.Equal(told, []string{CondTemporal}) {
			w.Errorf("people heard of %q", told)
		}
		testdb.Exec(w, w.s.DB, "UPDATE processes SET seen_at = NOW(6) + INTERVAL 1 HOUR WHERE seen_at < NOW(6) - INTERVAL 5 MINUTE")
		if s := w.look(); s.Outbox.Waiting != 999 { // it lives
			w.Errorf("%v", s.Outbox.Waiting)
		}
	})
}

// What ends with one process's own telling says for how long it has lasted; and a failure is paused before it is tried again.
func TestToldAlone(t *testing.T) {
	var calls atomic.Int32
	var fail atomic.Bool
	fail.Store(true)
	var last Notice
	tl := newTeller(Config{Logger: discard, Thresholds: quick, Tell: func(_ context.Context, n Notice) error {
		calls.Add(1)
		last = n
		if fail.Load() {
			return errors.New("SES is away")
		}
		return nil
	}})
	s := &State{Database: Part{Error: "away"}, Conditions: []Condition{{Name: CondDatabase, For: 90}}}
	m := newMemory(quick)
	m.held[key{name: CondDatabase}] = &held{}
	m.known[CondDatabase] = time.Now()
	for range 5 {
		tl.tell(t.Context(), s, m)
		tl.wait()
	}
	if calls.Load() != 1 {
		t.Errorf("%d tries at once", calls.Load())
	}
	fail.Store(false)
	tl.vain[key{name: CondDatabase}] = time.Now().Add(-again)
	tl.tell(t.Context(), s, m)
	tl.wait()
	clear(m.held)
	s.Conditions = nil
	tl.tell(t.Context(), s, m)
	tl.wait()
	if calls.Load() != 3 || !last.Over || last.Lasted < 90*time.Second || !strings.Contains(last.alert().Detail, "1m30s") {
		t.Errorf("%d calls, the last %+v", calls.Load(), last)
	}
}

// Where a table is not there yet the text says what makes it: the server's words do not.
func TestAMissingTableSaysWhatMakesIt(t *testing.T) {
	eachWorld(t, func(w *world) {
		testdb.Exec(w, w.s.DB, "DROP TABLE processes")
		state, err := Look(w.Context(), Config{DB: w.s.DB, Client: w.temporal, Namespace: "n", Logger: discard, Thresholds: quick})
		if err != nil {
			w.Fatal(err)
		}
		if state.Database.OK || !strings.HasSuffix(state.Database.Error, ": run `oncepost migrate`") {
			w.Errorf("%+v", state.Database)
		}
	})
}

// A relay that was frozen has not read meanwhile, and does again: that is no relay which lives and does not read.
func TestAThawedRelayHasJustBegunToBeSilent(t *testing.T) {
	silent := func() Published { return Published{Relay: &Relay{ReadAgo: 48}} }
	b := NewBeat(BeatConfig{Role: RoleRelay, Every: time.Second, Logger: discard, Publish: silent})
	says := func(least, most float64) {
		t.Helper()
		if got := b.since(silent()).Relay.ReadAgo; got < least || got > most {
			t.Errorf("the last read is %.1f seconds old, want %.0f to %.0f", got, least, most)
		}
		b.ended(time.Now())
	}
	says(48, 48)
	says(48, 48)
	b.wrote = b.wrote.Add(-48 * time.Second)
	says(0, 1)
	b.thawed = b.thawed.Add(-40 * time.Second) // and never read again
	says(40, 41)
	b.ended(time.Now().Add(-48 * time.Second)) // frozen in the middle of a write
	says(0, 1)
}

// An end that was told and could not be noted, since the database went again, swallows no later end.
func TestALaterEndIsTold(t *testing.T) {
	var overs int
	tl := newTeller(Config{Logger: discard, Thresholds: quick, Tell: func(_ context.Context, n Notice) error {
		if n.Over {
			overs++
		}
		return nil
	}})
	say := func(over bool, noted error) {
		t.Helper()
		s := &State{}
		tl.say(t.Context(), key{name: CondDatabase}, s.notice(Condition{Name: CondDatabase}, over), func(context.Context) error { return noted })
		tl.wait()
	}
	gone := errors.New("the database is away")
	say(true, gone)
	say(true, nil) // the same end, noted at last
	if overs != 1 {
		t.Errorf("one end was told %d times", overs)
	}
	say(true, gone)
	say(false, nil)
	say(true, nil)
	if overs != 3 {
		t.Errorf("%d ends were told, want 3", overs)
	}
}
