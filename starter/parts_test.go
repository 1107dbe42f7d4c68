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

func TestLimiter(t *testing.T) {
	// capacity is how many starts the server works on at once; more only queue.
	for _, c := range []struct {
		name     string
		capacity int
		service  time.Duration
		min, max int
	}{
		{"no limit in sight", 1 << 20, 500 * time.Millisecond, 1000, 1000},
		{"fast and wide", 1 << 20, time.Millisecond, 1000, 1000},
		{"a small server", 16, 10 * time.Millisecond, 8, 64},
		{"a middling server", 100, 10 * time.Millisecond, 64, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLimiter(1000, false)
			for range 400_000 {
				n := l.current()
				latency := c.service * time.Duration(max(1, (n+c.capacity-1)/c.capacity))
				l.observe(time.Now(), latency, n)
			}
			if got := l.current(); got < c.min || got > c.max {
				t.Errorf("limit %d, want %d to %d", got, c.min, c.max)
			}
		})
	}
}

func TestLimiterLearnsNothingWhenItIsNotReached(t *testing.T) {
	l := newLimiter(1000, false)
	before := l.current()
	for range 10_000 {
		l.observe(time.Now(), time.Millisecond, 1)
	}
	if got := l.current(); got != before {
		t.Errorf("limit went from %d to %d with one start in flight", before, got)
	}
}

func TestLimiterHalvesOnceForOneOverload(t *testing.T) {
	l := newLimiter(1000, false)
	began := time.Now()
	for range 50 { // all that were in flight come back refused
		l.overloaded(began)
	}
	if got := l.current(); got != firstLimit/2 {
		t.Errorf("limit %d, want %d", got, firstLimit/2)
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for name, cfg := range map[string]Config{
		"MaxStarts": {MaxStarts: -1}, "MaxPage": {MaxPage: -1}, "MaxDelete": {MaxDelete: 1001}, "MaxBytes": {MaxBytes: 1},
		"MaxPoll": {MaxPoll: time.Minute}, "Grace": {Grace: time.Minute}, "StartTimeout": {StartTimeout: -1},
	} {
		if _, err := New(nil, newRecorder(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestATrialNeverShutsTheGateForEver: whatever a trial comes to, another one follows.
func TestATrialNeverShutsTheGateForEver(t *testing.T) {
	cfg, err := quick().withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(cfg)
	g.verifiedAs(Outcome{})
	began := time.Now()
	for range refusalsToMove - 1 { // a poison message, almost found guilty
		g.refused("poison", "no")
		g.succeeded(time.Now().Add(time.Millisecond), "good")
	}
	for range manyFailures {
		g.failed(Outcome{Class: Away, Reason: "gone"})
	}
	for round := range 5 {
		g.until = time.Time{}
		g.verifiedAs(Outcome{})
		for g.allow(time.Now()) {
			switch round {
			case 0:
				g.refused("poison", "no")
			case 1:
				g.returnTrial()
				g.failed(Outcome{Class: Away, Reason: "gone"})
			case 2:
				g.refused("other", "no")
			default:
				g.failed(Outcome{Class: Away, Reason: "gone"})
			}
			if time.Since(began) > 10*time.Second {
				t.Fatal("trials without an end")
			}
			if round < 2 && g.trials == trialsAtOnce {
				break // given back
			}
		}
		if !g.open && g.trials == 0 && g.trying > 0 {
			t.Fatalf("round %d: shut with %d trials running and none that runs", round, g.trying)
		}
	}
}
