package starter

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestADeadlineIsSharedForAShortWhile(t *testing.T) {
	for _, c := range []struct{ timeout, shared time.Duration }{
		{10 * time.Second, deadlineShared},
		{500 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(c.timeout.String(), func(t *testing.T) {
			parent, cancel := context.WithCancelCause(t.Context())
			d := deadline{timeout: c.timeout}
			began := time.Now()
			first := d.from(parent, began)
			if d.from(parent, began.Add(c.shared)) != first {
				t.Error("a start within the while has a deadline of its own")
			}
			// A start that begins at the end of the while has the least time.
			if end, ok := first.Deadline(); !ok || end.Sub(began.Add(c.shared)) < c.timeout*9/10 {
				t.Errorf("a start has %s of %s", end.Sub(began.Add(c.shared)), c.timeout)
			}
			if end, _ := first.Deadline(); end.After(time.Now().Add(c.timeout)) {
				t.Errorf("a start has until %s, more than its time-out", end)
			}
			later := d.from(parent, began.Add(c.shared+1))
			if later == first {
				t.Error("a start after the while shares the deadline of those before")
			}
			if first.Err() != nil {
				t.Error("the starts before were cut off")
			}
			stop := errors.New("stop")
			cancel(stop)
			for _, ctx := range []context.Context{first, later} {
				if !errors.Is(context.Cause(ctx), stop) {
					t.Errorf("a start did not end with its parent: %v", ctx.Err())
				}
			}
		})
	}
}

func TestADeadlinePasses(t *testing.T) {
	d := deadline{timeout: 20 * time.Millisecond}
	ctx := d.from(t.Context(), time.Now())
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("error %v", ctx.Err())
	}
}
