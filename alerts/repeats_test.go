package alerts

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// The same alert within the window is counted; the next one that leaves says how many were.
func TestTheSameAlertIsCounted(t *testing.T) {
	w := newWorld(t, nil)
	a := Alert{Title: "disk full"}
	w.must(a)
	w.clock = w.clock.Add(time.Minute)
	for range 3 {
		w.must(a)
	}
	w.must(Alert{Title: "another"})
	w.must(Alert{Title: "disk full", Key: "of another host"})
	w.last(3)
	w.clock = w.clock.Add(9 * time.Minute)
	w.must(a)
	m := w.last(4)
	if m.Subject != "[alert] disk full (and 3 more)" || !strings.Contains(m.Text, "3 more times since 2030-01-02 03:05:05 UTC") {
		t.Errorf("%q: %q", m.Subject, m.Text)
	}
	w.clock = w.clock.Add(10 * time.Minute)
	w.must(a)
	if m := w.last(5); m.Subject != "[alert] disk full" {
		t.Errorf("%q", m.Subject)
	}
}

// A key that two titles share makes them one alert.
func TestTheKeyDecides(t *testing.T) {
	w := newWorld(t, nil)
	for n := range 5 {
		w.must(Alert{Title: fmt.Sprintf("%d rows are late", n), Key: "late"})
	}
	w.last(1)
}

func TestManyAtOnceAreOne(t *testing.T) {
	w := newWorld(t, nil)
	w.fault(sesstandin.Fault{Delay: sesstandin.Duration(50 * time.Millisecond)})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := w.Send(t.Context(), Alert{Title: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.last(1)
	w.clock = w.clock.Add(time.Hour)
	w.must(Alert{Title: "x"})
	if m := w.last(2); m.Subject != "[alert] x (and 99 more)" {
		t.Errorf("%q", m.Subject)
	}
}

// An alert that has reached nobody holds the next one up for a moment only. Nobody is told that it left, and the one that
// does leave tells of all.
func TestAnAlertThatReachedNobodyIsTriedSoon(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Webhook = "" })
	w.preset("paused")
	a := Alert{Title: "x"}
	w.fails(a, "reached nobody")
	w.clock = w.clock.Add(10 * time.Second)
	w.fails(a, "reached nobody") // counted
	if n := w.ses.Requests()["SendRawEmail"]; n != 1 {
		t.Errorf("%d requests", n)
	}
	w.clock = w.clock.Add(20 * time.Second)
	w.fails(a, "reached nobody") // tried
	w.ses.ClearFaults()
	w.clock = w.clock.Add(30 * time.Second)
	w.must(a)
	if m := w.last(1); m.Subject != "[alert] x (and 3 more)" || !strings.Contains(m.Text, "since 2030-01-02 03:04:05") {
		t.Errorf("%q: %q", m.Subject, m.Text)
	}
}

// What the webhook has carried is not repeated either.
func TestWhatTheWebhookCarriedIsCounted(t *testing.T) {
	w := newWorld(t, nil)
	w.preset("paused")
	for range 3 {
		w.fails(Alert{Title: "x"}, "the webhook carried the alert")
	}
	if n := len(w.hook.posts()); n != 1 {
		t.Errorf("%d posts", n)
	}
}

// Keys without end do not fill the memory, and the latest is still remembered.
func TestTheMemoryIsBounded(t *testing.T) {
	r := newRepeats(100)
	now := time.Unix(0, 0)
	for n := range 10_000 {
		now = now.Add(time.Second)
		if first, e := r.begin(fmt.Sprint(n), now); !first {
			t.Fatalf("alert %d is counted", n)
		} else {
			r.end(e, now.Add(window), nil, true)
		}
	}
	if n := len(r.seen); n != 100 {
		t.Errorf("%d are remembered", n)
	}
	if first, _ := r.begin("9999", now); first {
		t.Error("the latest is forgotten")
	}
}

// What is being sent is not forgotten, however many others come.
func TestWhatIsBeingSentIsRemembered(t *testing.T) {
	r := newRepeats(10)
	now := time.Unix(0, 0)
	_, sending := r.begin("slow", now)
	for n := range 100 {
		_, e := r.begin(fmt.Sprint(n), now)
		r.end(e, now.Add(window), nil, true)
	}
	if first, e := r.begin("slow", now); first || e != sending {
		t.Error("it would leave a second time")
	}
}
