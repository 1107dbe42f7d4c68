package sesstandin_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ses"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// clock is a clock that a test moves.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) now() time.Time      { return time.Unix(0, c.ns.Load()) }
func (c *clock) add(d time.Duration) { c.ns.Add(int64(d)) }

func TestRateIsEnforced(t *testing.T) {
	c := newClock()
	s := start(t, sesstandin.Config{Now: c.now, Quota: sesstandin.Quota{MaxSendRate: 3, Enforce: true}})
	for i := range 3 {
		if err := s.send(t.Context(), ""); err != nil {
			t.Fatalf("send %d: %v", i, err)
		}
		c.add(100 * time.Millisecond)
	}
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "Maximum sending rate exceeded.")
	c.add(700 * time.Millisecond) // one second after the first
	if err := s.send(t.Context(), ""); err != nil {
		t.Errorf("after the window: %v", err)
	}
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "Maximum sending rate exceeded.")
	s.accepted(4)
}

// A mail with more recipients than the rate could otherwise never go.
func TestRateLetsALargeMailPassAlone(t *testing.T) {
	c := newClock()
	s := start(t, sesstandin.Config{Now: c.now, Quota: sesstandin.Quota{MaxSendRate: 3, Enforce: true}})
	if err := s.send(t.Context(), "", recipients(10)...); err != nil {
		t.Fatal(err)
	}
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "rate")
}

func TestRateHoldsAgainstConcurrency(t *testing.T) {
	c := newClock()
	s := start(t, sesstandin.Config{Now: c.now})
	s.inject(sesstandin.Fault{MaxPerSecond: 5})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { _ = s.send(t.Context(), "") }) // most must fail: the count below is the test
	}
	wg.Wait()
	s.accepted(5)
}

func TestDailyQuotaIsEnforced(t *testing.T) {
	c := newClock()
	s := start(t, sesstandin.Config{Now: c.now, Quota: sesstandin.Quota{Max24HourSend: 3, Enforce: true}})
	for _, to := range [][]string{recipients(2), recipients(1)} {
		if err := s.send(t.Context(), "", to...); err != nil {
			t.Fatal(err)
		}
		c.add(time.Hour)
	}
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "Daily message quota exceeded.")
	wantQuota(t, s, 3, 3)
	c.add(22*time.Hour + time.Minute) // 24 hours after the first
	wantQuota(t, s, 3, 1)
	if err := s.send(t.Context(), "", recipients(2)...); err != nil {
		t.Errorf("after a day: %v", err)
	}
}

func TestQuotaIsOnlyReportedByDefault(t *testing.T) {
	s := start(t, sesstandin.Config{Quota: sesstandin.Quota{Max24HourSend: 1, MaxSendRate: 1}})
	for range 3 {
		if err := s.send(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	wantQuota(t, s, 1, 3)
}

// GetSendQuota is how a client tells the daily quota from the rate, so faults must not contradict it.
func TestQuotaFaultsShowInGetSendQuota(t *testing.T) {
	s := start(t, sesstandin.Config{})
	s.inject(sesstandin.Fault{MaxPerDay: 2, Times: 1})
	for range 2 {
		if err := s.send(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	wantQuota(t, s, 2, 2)
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "Daily message quota exceeded.")
	if err := s.send(t.Context(), ""); err != nil {
		t.Errorf("after Times: %v", err)
	}
	wantQuota(t, s, -1, 3)
	s.inject(sesstandin.Fault{QuotaExhausted: true})
	wantQuota(t, s, 200, 200)
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "Daily message quota exceeded.")
}

func wantQuota(t *testing.T, s *stand, most, sent float64) {
	t.Helper()
	q, err := s.ses.GetSendQuota(t.Context(), &ses.GetSendQuotaInput{})
	if err != nil {
		t.Fatal(err)
	}
	if q.Max24HourSend != most || q.SentLast24Hours != sent {
		t.Errorf("GetSendQuota says %v of %v, want %v of %v", q.SentLast24Hours, q.Max24HourSend, sent, most)
	}
}
