package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Policy says what happens when nobody knows whether an effect has happened.
type Policy uint8

// The policies.
const (
	// Resend does it once more; when that is unknown too, a person is asked. For effects of which a second one does no harm.
	Resend Policy = iota
	// Hold asks a person at once.
	Hold
)

// TypeUnknown is the type of the final error of an activity whose effect may have happened. Its details are an Unknown.
const TypeUnknown = "Unknown"

// LeastTime is the shortest StartToCloseTimeout of an activity that calls Once: claim and outcome need their part of it.
const LeastTime = 20 * time.Second

// Once does fn at most once for each message and step, however often its activity is retried, reset or killed. It is for use
// within an activity of the caller's own, whose workflow's ID is the message's; step names the effect among those of the
// workflow. It returns what fn returned: an ID of what was done, at most 255 printable ASCII characters, which is also what
// later calls return without doing fn again.
//
// A failure that fn returns means that the effect has not happened, and may be tried again as the activity's retry policy
// says. Where it may have happened (a request left, and no answer came) fn returns [Unsure] of the error; an error that is
// context.DeadlineExceeded or context.Canceled, or comes once fn's context has ended, is taken for one. A swallowed error counts
// as done.
//
// fn's context ends in time for the outcome to be recorded, and heeds neither cancellation nor the worker's shutdown before. The
// activity needs a StartToCloseTimeout of LeastTime or more. Where the effect may have happened and the policy does not let it
// be repeated, the error has the type TypeUnknown, and no retry follows: package workflows has Parking for that. Like every error
// of an activity, fn's is shown in Temporal: it must hold no secret and no address.
//
// The ledger is that of the worker (worker.Config, [WithLedger]).
func Once(ctx context.Context, step string, policy Policy, fn func(ctx context.Context) (id string, err error)) (string, error) {
	ledger, ok := ctx.Value(ledgerKey{}).(Ledger)
	if !ok {
		return "", never(TypeLedger, errors.New("activities.Once needs a ledger: run the activity in worker.Run, or give the worker "+
			"activities.WithLedger as its BackgroundActivityContext"))
	}
	info := activity.GetInfo(ctx)
	left := time.Until(info.Deadline)
	if info.StartToCloseTimeout < LeastTime {
		return "", never(TypeInvalidKey, fmt.Errorf("an activity that calls activities.Once needs a StartToCloseTimeout of %s or more, and has %s",
			LeastTime, info.StartToCloseTimeout))
	}
	in := SendInput{MessageID: info.WorkflowExecution.ID, Step: step}
	var failed error // what fn returned in this attempt
	e := effect{
		ledger: ledger,
		policy: policy,
		claim:  Claim{Key: in.key(), Content: digest([]byte("once"), []byte(step)), For: left + claimMargin},
		by:     info.Deadline.Add(-recordTimeout),
		try: func(ctx context.Context) Answer {
			ctx, cancel := context.WithDeadline(ctx, info.Deadline.Add(-recordTimeout))
			defer cancel()
			var id string
			if id, failed = fn(ctx); failed != nil && ctx.Err() != nil { // whatever type a client's time-out has
				failed = Unsure(failed)
			}
			return answer(id, failed)
		},
	}
	r, err := e.run(ctx)
	if err == nil && r.Unknown != nil && policy == Resend && r.Unknown.Next == 1 {
		return "", retry(TypeNotSent, step+" may have happened, and is done once more", 0)
	}
	if err == nil && r.Unknown != nil {
		text := "nobody knows whether " + step + " has happened: " + r.Unknown.Class
		if failed != nil {
			text += ": " + failed.Error()
		}
		return "", temporal.NewApplicationErrorWithOptions(text, TypeUnknown, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{*r.Unknown}})
	}
	return r.SESMessageID, err
}

// answer is what fn's end means.
func answer(id string, err error) Answer {
	var unsure *unsureError
	switch {
	case err == nil:
		return Answer{Verdict: VerdictSent, ProviderID: clean(id)}
	case errors.As(err, &unsure), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Answer{Verdict: VerdictUnknown, Class: classUnsure}
	}
	return Answer{Verdict: VerdictLater, Class: "failed", err: err}
}

// classUnsure is the error class of an effect that failed and may have happened.
const classUnsure = "unsure"

// clean makes an ID one that the ledger's column takes: what is done must not become unknown by its name.
func clean(id string) string {
	b := []byte(id)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b[:min(len(b), 255)])
}

// Unsure says of an error that the effect may have happened all the same.
func Unsure(err error) error { return &unsureError{err} }

type unsureError struct{ err error }

func (u *unsureError) Error() string { return "it may have happened: " + u.err.Error() }
func (u *unsureError) Unwrap() error { return u.err }

type ledgerKey struct{}

// WithLedger returns a context whose activities find the ledger for Once. A worker has it as BackgroundActivityContext.
func WithLedger(ctx context.Context, l Ledger) context.Context {
	return context.WithValue(ctx, ledgerKey{}, l)
}
