package activities

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// How long the parts of an attempt may take. Together they are less than StartToClose, and a claim lasts longer than that: so
// while an attempt may still be at its effect, no other is.
const (
	StartToClose = 30 * time.Second

	ledgerCall  = 3 * time.Second // one statement
	ledgerPause = 200 * time.Millisecond
	claimMargin = 10 * time.Second
)

// Variables for the tests, which do not wait so long.
var (
	claimTimeout  = 5 * time.Second
	recordTimeout = 12 * time.Second // a try has at most 10 s in between
)

// effect is something that must not happen twice, with its claim before and its outcome after it.
type effect struct {
	ledger Ledger
	policy Policy
	claim  Claim     // without Token
	by     time.Time // when it must have begun: later its claim may end before it does
	try    func(ctx context.Context) Answer
}

// known is what an attempt knows and could not write into the ledger. It goes to the next attempt as heartbeat details.
type known struct {
	Step     string   `json:"step"`
	Token    Token    `json:"token"`
	Standing Standing `json:"standing"`
	ResultID string   `json:"result_id,omitempty"`
	Class    string   `json:"class,omitempty"`
}

// run does the effect, unless the ledger knows better. From the claim to the recorded outcome it heeds neither cancellation
// nor the worker's shutdown: to break off there would leave a question where there is an answer.
func (e *effect) run(ctx context.Context) (SendResult, error) {
	if n := len(e.claim.Step); n == 0 || n > 64 || len(e.claim.MessageID) > 128 {
		return SendResult{}, never(TypeInvalidKey, fmt.Errorf("the step %q must have 1 to 64 bytes, and the message ID at most 128", e.claim.Step))
	}
	if err := e.settleEarlier(ctx); err != nil {
		return SendResult{}, err
	}
	if err := ctx.Err(); err != nil { // nothing is claimed yet
		return SendResult{}, err
	}
	ctx = context.WithoutCancel(ctx)
	rand.Read(e.claim.Token[:]) // never fails (documented)
	entry, err := e.claimed(ctx)
	if err != nil {
		// The claim may stand, but its effect has not been tried: the next attempt frees it.
		return SendResult{}, e.unwritten(ctx, known{Step: e.claim.Step, Token: e.claim.Token, Standing: StandingFree, Class: "not_tried"}, err)
	}
	if entry.Standing != StandingClaimed {
		return standing(entry)
	}
	answer := tooLate
	if time.Now().Before(e.by) {
		answer = e.try(ctx)
	}
	k := known{Step: e.claim.Step, Token: e.claim.Token, Standing: standingOf(answer.Verdict), ResultID: answer.ProviderID, Class: answer.Class}
	if err := e.record(ctx, k); err != nil {
		return SendResult{}, e.unwritten(ctx, k, err)
	}
	return e.outcome(answer)
}

// tooLate is the answer where the claim has taken so long, or the process has stood still, that the effect is not begun.
var tooLate = Answer{Verdict: VerdictLater, Class: "too_late", Text: "the claim took too long; it was not tried"}

// settleEarlier writes what an earlier attempt knew and could not write.
func (e *effect) settleEarlier(ctx context.Context) error {
	if !activity.HasHeartbeatDetails(ctx) {
		return nil
	}
	var k known
	if err := activity.GetHeartbeatDetails(ctx, &k); err != nil || k.Token == (Token{}) || k.Step != e.claim.Step {
		return nil //nolint:nilerr // they are the caller's own, or of another effect of the same activity
	}
	err := e.record(ctx, k)
	if err == nil || errors.Is(err, ErrSuperseded) { // an attempt in between has written it already, or has never claimed
		return nil
	}
	return e.unwritten(ctx, k, err)
}

// unwritten hands k to the next attempt, and fails this one.
func (e *effect) unwritten(ctx context.Context, k known, err error) error {
	activity.RecordHeartbeat(ctx, k)
	return temporal.NewApplicationErrorWithOptions("the ledger of sends cannot be used; nothing is lost, and it is tried again: "+err.Error(),
		TypeLedger, temporal.ApplicationErrorOptions{Cause: err})
}

// claimed claims. An effect that somebody, or its policy, lets be repeated is claimed as what it is: one generation more.
func (e *effect) claimed(ctx context.Context) (Entry, error) {
	entry, err := e.claimOne(ctx)
	if err == nil && entry.Standing == StandingUnknown && (entry.Authorised || e.policy == Resend && entry.Next == 1) {
		e.claim.Generation = entry.Next
		return e.claimOne(ctx)
	}
	return entry, err
}

// claimOne claims, and where an answer is lost claims again with the same token.
func (e *effect) claimOne(ctx context.Context) (entry Entry, err error) {
	err = persist(ctx, claimTimeout, func(ctx context.Context) error {
		entry, err = e.ledger.Claim(ctx, e.claim)
		return err
	})
	return entry, err
}

func (e *effect) record(ctx context.Context, k known) error {
	return persist(ctx, recordTimeout, func(ctx context.Context) error {
		return e.ledger.Record(ctx, e.claim.Key, k.Token, Outcome{Standing: k.Standing, ResultID: k.ResultID, ErrorClass: k.Class})
	})
}

// persist calls until it succeeds or the time is up. ErrSuperseded is an answer.
func persist(ctx context.Context, limit time.Duration, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, ledgerCall)
		err := call(one)
		done()
		if err == nil || errors.Is(err, ErrSuperseded) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(ledgerPause):
		}
	}
}

func standingOf(v Verdict) Standing {
	return map[Verdict]Standing{
		VerdictSent: StandingDone, VerdictLater: StandingFree, VerdictStop: StandingFree, VerdictNever: StandingRefused, VerdictUnknown: StandingUnknown,
	}[v]
}

// digest frames its parts by their lengths, so that no two lists share one.
func digest(parts ...[]byte) (sum [32]byte) {
	h := sha256.New()
	for _, part := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:]) // never fails (documented in hash.Hash)
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// standing turns what the ledger says, where it gives no leave, into the attempt's end.
func standing(e Entry) (SendResult, error) {
	switch e.Standing {
	case StandingDone:
		return SendResult{SESMessageID: e.ResultID}, nil
	case StandingRefused:
		return SendResult{}, never(TypeRejected, fmt.Errorf("refused for good before: %s", e.ErrorClass))
	case StandingDiffers:
		return SendResult{}, never(TypeKeyReused, errors.New("the ledger holds this message ID and step for another recipient's name, "+
			"type or payload: it is not sent, and what is there stays as it is"))
	case StandingUnknown:
		return SendResult{Unknown: &Unknown{Class: or(e.ErrorClass, "expired"), Next: e.Next}}, nil
	case StandingBusy:
		return SendResult{}, retry(TypeNotSent, "an earlier attempt may still be at it; waiting for its claim to end", e.Wait+busyMargin)
	}
	panic("activities: standing " + e.Standing.String())
}

// busyMargin lets a claim end before it is looked at again.
const busyMargin = 100 * time.Millisecond

// outcome turns an answer, once it is recorded, into the attempt's end.
func (e *effect) outcome(a Answer) (SendResult, error) {
	switch a.Verdict {
	case VerdictSent:
		return SendResult{SESMessageID: a.ProviderID}, nil
	case VerdictLater:
		if a.err != nil {
			return SendResult{}, a.err
		}
		return SendResult{}, retry(TypeNotSent, a.Class+": "+a.Text, a.Wait)
	case VerdictStop:
		return SendResult{}, retry(TypeStopped, a.Class+": "+a.Text, a.Wait)
	case VerdictNever:
		return SendResult{}, never(TypeRejected, fmt.Errorf("%s: %s", a.Class, a.Text))
	case VerdictUnknown:
		return SendResult{Unknown: &Unknown{Class: a.Class, Next: e.claim.Generation + 1}}, nil
	}
	panic("activities: verdict " + a.Verdict.String())
}

func retry(kind, text string, wait time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(text, kind, temporal.ApplicationErrorOptions{NextRetryDelay: wait})
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
