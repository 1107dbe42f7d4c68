package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// onceRun runs an activity that does fn once.
func onceRun(t *testing.T, l Ledger, policy Policy, startToClose time.Duration, fn func(ctx context.Context) (string, error)) (id string, err error) {
	t.Helper()
	return onceRunIn(t.Context(), t, l, policy, startToClose, fn)
}

// onceRunIn is onceRun in a worker whose context is ctx.
func onceRunIn(ctx context.Context, t *testing.T, l Ledger, policy Policy, startToClose time.Duration, fn func(ctx context.Context) (string, error)) (id string, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	if l != nil {
		env.SetWorkerOptions(worker.Options{BackgroundActivityContext: WithLedger(ctx, l)})
	}
	charge := func(ctx context.Context) (string, error) { return Once(ctx, "mail", policy, fn) }
	env.RegisterActivity(charge)
	env.ExecuteWorkflow(func(ctx workflow.Context) (id string, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: startToClose, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		err = workflow.ExecuteActivity(ctx, charge).Get(ctx, &id)
		return id, err
	})
	if err := env.GetWorkflowError(); err != nil {
		return "", err
	}
	err = env.GetWorkflowResult(&id)
	return id, err
}

func TestOnce(t *testing.T) {
	errDeclined := temporal.NewNonRetryableApplicationError("no funds", "Declined", nil)
	unknown := Entry{Standing: StandingUnknown, Next: 1, ErrorClass: "expired"}
	for _, c := range []struct {
		name        string
		entries     []Entry
		policy      Policy
		id          string
		fails       error
		want        string
		kind        string   // of the error
		generations []int    // claimed
		record      Standing // or 0 where nothing is
	}{
		{name: "done", id: "pay-1", want: "pay-1", generations: []int{0}, record: StandingDone},
		{name: "an ID that the column does not take", id: "é" + strings.Repeat("x", 300), want: "??" + strings.Repeat("x", 253), generations: []int{0}, record: StandingDone},
		{name: "done before", entries: []Entry{{Standing: StandingDone, ResultID: "pay-0"}}, want: "pay-0", generations: []int{0}},
		{name: "failed", fails: errDeclined, kind: "Declined", generations: []int{0}, record: StandingFree},
		{name: "unsure", policy: Hold, fails: Unsure(errors.New("cut")), kind: TypeUnknown, generations: []int{0}, record: StandingUnknown},
		{name: "no answer in time", policy: Hold, fails: fmt.Errorf("post: %w", context.DeadlineExceeded), kind: TypeUnknown, generations: []int{0}, record: StandingUnknown},
		{name: "unknown, and held", entries: []Entry{unknown}, policy: Hold, kind: TypeUnknown, generations: []int{0}},
		{name: "unknown, and repeated", entries: []Entry{unknown, {}}, id: "pay-2", want: "pay-2", generations: []int{0, 1}, record: StandingDone},
		{name: "unknown for the second time", entries: []Entry{{Standing: StandingUnknown, Next: 2}}, kind: TypeUnknown, generations: []int{0}},
		{name: "authorised", entries: []Entry{{Standing: StandingUnknown, Next: 3, Authorised: true}, {}}, policy: Hold, id: "pay-3", want: "pay-3", generations: []int{0, 3}, record: StandingDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &notebook{entries: c.entries}
			done := 0
			id, err := onceRun(t, b, c.policy, time.Minute, func(context.Context) (string, error) { done++; return c.id, c.fails })
			var app *temporal.ApplicationError
			if c.kind == "" && err != nil || c.kind != "" && (!errors.As(err, &app) || app.Type() != c.kind || !app.NonRetryable()) || id != c.want {
				t.Errorf("%q, %v", id, err)
			}
			var generations []int
			for _, claim := range b.claims {
				generations = append(generations, claim.Generation)
				if claim.For <= time.Minute || claim.Step != "mail" || claim.MessageID == "" {
					t.Errorf("claim %+v", claim)
				}
			}
			if fmt.Sprint(generations) != fmt.Sprint(c.generations) {
				t.Errorf("generations %v", generations)
			}
			if c.record == 0 && len(b.records)+done != 0 || c.record != 0 && (len(b.records) != 1 || b.records[0].Standing != c.record || done != 1) {
				t.Errorf("done %d times, records %+v", done, b.records)
			}
		})
	}
}

// A first unknown of a Resend effect is not final: the next attempt repeats it.
func TestOnceIsTriedAgainWhereThePolicySaysSo(t *testing.T) {
	_, err := onceRun(t, &notebook{}, Resend, time.Minute, func(context.Context) (string, error) { return "", Unsure(errors.New("cut")) })
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || app.Type() != TypeNotSent {
		t.Errorf("%v", err)
	}
}

func TestOnceHasTimeToRecord(t *testing.T) {
	_, err := onceRun(t, &notebook{}, Hold, LeastTime, func(ctx context.Context) (string, error) {
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > LeastTime-recordTimeout || left < LeastTime-recordTimeout-2*time.Second {
			t.Errorf("%s left", left)
		}
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
	_, err = onceRun(t, &notebook{}, Hold, LeastTime-1, func(context.Context) (string, error) { return "", nil })
	if !final(err, TypeInvalidKey) || !strings.Contains(err.Error(), "20s") {
		t.Errorf("%v", err)
	}
}

func TestOnceWithoutALedger(t *testing.T) {
	_, err := onceRun(t, nil, Hold, time.Minute, func(context.Context) (string, error) { t.Error("done"); return "", nil })
	if !final(err, TypeLedger) || !strings.Contains(err.Error(), "WithLedger") {
		t.Errorf("%v", err)
	}
}

// leave shortens what fn has, of LeastTime, to d.
func leave(t *testing.T, d time.Duration) {
	t.Helper()
	before := recordTimeout
	t.Cleanup(func() { recordTimeout = before })
	recordTimeout = LeastTime - d
}

// Whatever type a client's time-out has: once fn's context has ended, nobody knows.
func TestAnErrorAfterTheDeadlineIsUnknown(t *testing.T) {
	leave(t, 200*time.Millisecond)
	b := &notebook{}
	_, err := onceRun(t, b, Hold, LeastTime, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", errors.New("rpc error: code = DeadlineExceeded")
	})
	if !final(err, TypeUnknown) || !strings.Contains(err.Error(), "code = DeadlineExceeded") || len(b.records) != 1 || b.records[0].Standing != StandingUnknown {
		t.Errorf("%v, records %+v", err, b.records)
	}
}

// A claim that took so long that fn could not end in time is given back, and fn not begun.
func TestTooLateIsNotTried(t *testing.T) {
	leave(t, 50*time.Millisecond)
	b := &notebook{claimErr: func(int) error { time.Sleep(100 * time.Millisecond); return nil }}
	_, err := onceRun(t, b, Hold, LeastTime, func(context.Context) (string, error) { t.Error("done"); return "", nil })
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || len(b.records) != 1 || b.records[0].Standing != StandingFree || b.records[0].Class != "too_late" {
		t.Errorf("%v, records %+v", err, b.records)
	}
}

// From the claim to the recorded outcome neither cancellation nor the worker's end is heeded.
func TestAnEffectIsNotBrokenOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &notebook{}
	id, err := onceRunIn(ctx, t, b, Hold, time.Minute, func(ctx context.Context) (string, error) {
		cancel()
		return "pay-1", ctx.Err()
	})
	if err != nil || id != "pay-1" || len(b.records) != 1 || b.records[0].Standing != StandingDone {
		t.Errorf("%q, %v, records %+v", id, err, b.records)
	}
}
