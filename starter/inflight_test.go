package starter

import (
	"testing"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

func all() *shardSet {
	var s shardSet
	for i := range s {
		s[i] = true
	}
	return &s
}

func row(shard uint8, id string) outbox.Row {
	return outbox.Row{Key: outbox.Key{Shard: shard, MessageID: id, CreatedAt: "t"}, Payload: []byte("1")}
}

func TestADeletedIDIsForgottenOnlyByALaterRead(t *testing.T) {
	f := newInflight()
	f.admit(f.beginRead(), []outbox.Row{row(1, "a")}, all())
	r := f.next(1)
	f.done(r.Key)
	under := f.beginRead() // has seen the row, and arrives after its delete
	f.deleted([]outbox.Key{r.Key})
	if n := f.admit(under, []outbox.Row{row(1, "a")}, all()); n[1] != 0 {
		t.Error("a read begun before the delete queued the deleted row again")
	}
	if n := f.admit(f.beginRead(), []outbox.Row{row(1, "a")}, all()); n[1] != 1 {
		t.Error("a row enqueued again after the delete was not queued by a read begun after it")
	}
}

func TestRetryWaits(t *testing.T) {
	f := newInflight()
	f.admit(f.beginRead(), []outbox.Row{row(1, "a")}, all())
	r := f.next(1)
	f.retry(r.Key, time.Hour, time.Hour)
	if n := f.admit(f.beginRead(), []outbox.Row{row(1, "a")}, all()); n[1] != 0 {
		t.Error("a row was queued before its pause had passed")
	}
	f.wakeWaiting()
	if n := f.admit(f.beginRead(), []outbox.Row{row(1, "a")}, all()); n[1] != 1 {
		t.Error("a row was not queued after its pause had been ended")
	}
}

func TestAdmitKeepsOnlyNewRowsInMemory(t *testing.T) { // scenario 40
	f := newInflight()
	waiting := row(1, "waiting")
	f.admit(f.beginRead(), []outbox.Row{row(1, "started"), waiting}, all())
	f.done(f.next(2).Key)
	f.retry(f.next(2).Key, time.Hour, time.Hour)
	f.admit(f.beginRead(), []outbox.Row{row(1, "queued")}, all())
	owned := all()
	owned[2] = false
	page := []outbox.Row{row(1, "started"), row(1, "waiting"), row(1, "queued"), row(2, "another's"), row(1, "new")}
	for i := range page {
		page[i].Headers = []byte("{}")
	}
	if n := f.admit(f.beginRead(), page, owned); n[1] != 1 || n[2] != 0 {
		t.Errorf("%d and %d rows are new, want 1 and 0", n[1], n[2])
	}
	for _, r := range page {
		if kept := r.Payload != nil || r.Headers != nil; kept != (r.MessageID == "new") {
			t.Errorf("%s: kept in memory: %v", r.MessageID, kept)
		}
	}
}

func TestALaneKeepsNoRowThatHasLeftIt(t *testing.T) {
	var l lane
	rows := make([]outbox.Row, 4)
	for i := range rows {
		l.push(&rows[i])
	}
	backing := l.rows
	if l.pop() != &rows[0] || backing[0] != nil {
		t.Error("the slot of a row taken still points to it")
	}
	l.remove(func(r *outbox.Row) bool { return r == &rows[2] })
	if l.len() != 2 || l.rows[0] != &rows[1] || l.rows[1] != &rows[3] || backing[2] != nil || backing[3] != nil {
		t.Errorf("after a remove: %v of %v", l.rows, backing)
	}
}

// TestAShardIsLeftWithItsLockedRows: somebody's open transaction must not hold up a handover.
func TestAShardIsLeftWithItsLockedRows(t *testing.T) {
	f, fin := newInflight(), newFinished()
	f.admit(f.beginRead(), []outbox.Row{row(1, "a"), row(1, "b"), row(2, "c")}, all())
	var keys []outbox.Key
	for range 3 {
		keys = append(keys, f.next(3).Key)
	}
	left := func(want bool, when string) {
		t.Helper()
		if got := f.leave(1, fin.lockedIn(1)); got != want {
			t.Errorf("%s: left %v, want %v", when, got, want)
		}
	}
	left(false, "two starts run")
	f.done(keys[0])
	f.done(keys[2])
	fin.held([]outbox.Key{keys[0], keys[2]})
	left(false, "a start runs, and a row of it and one of another shard are locked")
	f.done(keys[1])
	left(false, "a delete is due")
	fin.fail(failing{key: keys[1], after: time.Now().Add(time.Hour)})
	left(true, "a row cannot be deleted and another cannot be moved")
}

func TestWaitingRowsAreForgotten(t *testing.T) {
	f := newInflight()
	f.admit(f.beginRead(), []outbox.Row{row(1, "gone"), row(1, "paused"), row(2, "fresh")}, all())
	for range 3 {
		f.retry(f.next(3).Key, time.Hour, time.Hour)
	}
	ended := func(shard uint8, id string, ago time.Duration) {
		e := f.shards[shard][id]
		e.until = time.Now().Add(-ago)
		f.shards[shard][id] = e
	}
	ended(1, "gone", 2*time.Minute)
	ended(2, "fresh", time.Second)
	f.forgetWaiting(time.Minute)
	if _, known := f.shards[1]["gone"]; known || f.waiting != 2 || len(f.shards[1]) != 1 || len(f.shards[2]) != 1 {
		t.Errorf("%d waiting; shards %v and %v", f.waiting, f.shards[1], f.shards[2])
	}
}

func TestNoMorePausesAreRememberedThanMaxWaiting(t *testing.T) {
	f := newInflight()
	f.waiting = maxWaiting - 1
	f.admit(f.beginRead(), []outbox.Row{row(1, "a"), row(1, "b")}, all())
	for range 2 {
		f.retry(f.next(2).Key, time.Hour, time.Hour)
	}
	if f.waiting != maxWaiting || len(f.shards[1]) != 1 {
		t.Errorf("%d waiting, and of the two %v", f.waiting, f.shards[1])
	}
	if n := f.admit(f.beginRead(), []outbox.Row{row(1, "a"), row(1, "b")}, all()); n[1] != 1 || f.starting() != 0 || f.unfinished() != 0 {
		t.Errorf("%d rows are new, want the forgotten one; %d starting, %d unfinished", n[1], f.starting(), f.unfinished())
	}
}
