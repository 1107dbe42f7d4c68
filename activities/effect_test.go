package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

// notebook is a Ledger that notes what it is asked, and answers as told; without that it gives leave to all.
type notebook struct {
	entry     Entry
	claimErr  func(n int) error // for the nth claim, from 1
	recordErr func(n int) error
	claims    []Claim
	records   []known
	entries   []Entry // for the first claims, before entry
}

var errAway = errors.New("the database is away")

func (b *notebook) Claim(_ context.Context, c Claim) (Entry, error) {
	b.claims = append(b.claims, c)
	if b.claimErr != nil {
		if err := b.claimErr(len(b.claims)); err != nil {
			return Entry{}, err
		}
	}
	if n := len(b.claims); n <= len(b.entries) {
		return b.entries[n-1], nil
	}
	return b.entry, nil
}

func (b *notebook) Record(ctx context.Context, _ Key, token Token, o Outcome) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.records = append(b.records, known{"mail", token, o.Standing, o.ResultID, o.ErrorClass})
	if b.recordErr != nil {
		return b.recordErr(len(b.records))
	}
	return nil
}

func (b *notebook) Settle(context.Context, Key) error         { return nil }
func (b *notebook) Authorise(context.Context, Key, int) error { return nil }

func always(error) func(int) error { return func(int) error { return errAway } }

// attempt is one attempt of a send, with what it left for the next.
type attempt struct {
	result    SendResult
	err       error
	heartbeat *known
}

// try runs one attempt; from is what an earlier one left.
func try(t *testing.T, b *notebook, basket *outbasket, from *known) attempt {
	t.Helper()
	a := builtin(t, basket)
	a.Ledger = b
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)
	if from != nil {
		env.SetHeartbeatDetails(*from)
	}
	var got attempt
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		got.heartbeat = &known{}
		if err := details.Get(got.heartbeat); err != nil {
			t.Error(err)
		}
	})
	raw := converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(welcomePayload),
	})
	v, err := env.ExecuteActivity(a.Send, welcome, raw)
	if err == nil {
		err = v.Get(&got.result)
	}
	got.err = err
	return got
}

// quickly shortens how long a ledger that is away is tried.
func quickly(t *testing.T) {
	t.Helper()
	c, r := claimTimeout, recordTimeout
	t.Cleanup(func() { claimTimeout, recordTimeout = c, r })
	claimTimeout, recordTimeout = 3*ledgerPause, 3*ledgerPause
}

func TestClaimThenSendThenRecord(t *testing.T) {
	b, basket := &notebook{}, &outbasket{}
	got := try(t, b, basket, nil)
	if got.err != nil || got.result.SESMessageID != "ses-1" || got.heartbeat != nil {
		t.Fatalf("%+v", got)
	}
	if len(b.claims) != 1 || len(b.records) != 1 || len(basket.mails) != 1 {
		t.Fatalf("%d claims, %d mails, %d records", len(b.claims), len(basket.mails), len(b.records))
	}
	c := b.claims[0]
	if c.MessageID != welcome.MessageID || c.Step != "mail" || c.Generation != 0 || c.Token == (Token{}) || c.For <= StartToClose {
		t.Errorf("claim %+v", c)
	}
	if want := (known{"mail", c.Token, StandingDone, "ses-1", ""}); b.records[0] != want {
		t.Errorf("record %+v, want %+v", b.records[0], want)
	}
}

// Every part of an attempt ends before Temporal gives it up, and a claim after that.
func TestTheTimesAddUp(t *testing.T) {
	const mail = 10 * time.Second // Mailer's own deadline
	if claimTimeout+mail+recordTimeout >= StartToClose || claimMargin <= 0 || LeastTime <= claimTimeout+recordTimeout {
		t.Errorf("%s + %s + %s in %s, claimed for %s", claimTimeout, mail, recordTimeout, StartToClose, StartToClose+claimMargin)
	}
}

// Without leave there is no mail.
func TestWithoutLeaveThereIsNoMail(t *testing.T) {
	for _, c := range []struct {
		entry Entry
		check func(a attempt) bool
	}{
		{Entry{Standing: StandingDone, ResultID: "ses-7"}, func(a attempt) bool {
			return a.err == nil && a.result.SESMessageID == "ses-7" && a.result.Unknown == nil
		}},
		{Entry{Standing: StandingUnknown, Next: 3, ErrorClass: "cut_off"}, func(a attempt) bool {
			return a.err == nil && a.result.Unknown != nil && *a.result.Unknown == Unknown{Class: "cut_off", Next: 3}
		}},
		{Entry{Standing: StandingUnknown, Next: 1}, func(a attempt) bool {
			return a.err == nil && a.result.Unknown != nil && a.result.Unknown.Class == "expired"
		}},
		{Entry{Standing: StandingRefused, ErrorClass: "rejected"}, func(a attempt) bool { return final(a.err, TypeRejected) }},
		{Entry{Standing: StandingDiffers}, func(a attempt) bool { return final(a.err, TypeKeyReused) }},
		{Entry{Standing: StandingBusy, Wait: 7 * time.Second}, func(a attempt) bool {
			var app *temporal.ApplicationError
			return errors.As(a.err, &app) && !app.NonRetryable() && app.NextRetryDelay() == 7*time.Second+busyMargin
		}},
	} {
		t.Run(c.entry.Standing.String()+c.entry.ErrorClass, func(t *testing.T) {
			b, basket := &notebook{entry: c.entry}, &outbasket{}
			if got := try(t, b, basket, nil); !c.check(got) {
				t.Errorf("%+v", got)
			}
			if len(basket.mails)+len(b.records) != 0 {
				t.Errorf("%d mails, %d records", len(basket.mails), len(b.records))
			}
		})
	}
}

func final(err error, kind string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.NonRetryable() && app.Type() == kind
}

// What an answer becomes in the ledger and in Temporal.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		answer   Answer
		standing Standing
		check    func(a attempt) bool
	}{
		{Answer{Verdict: VerdictLater, Class: "throttled", Wait: 5 * time.Second, Text: "too fast"}, StandingFree, func(a attempt) bool {
			var app *temporal.ApplicationError
			return errors.As(a.err, &app) && !app.NonRetryable() && app.NextRetryDelay() == 5*time.Second && app.Type() == TypeNotSent
		}},
		{Answer{Verdict: VerdictStop, Class: "account_paused"}, StandingFree, func(a attempt) bool {
			var app *temporal.ApplicationError
			return errors.As(a.err, &app) && !app.NonRetryable() && app.Type() == TypeStopped
		}},
		{Answer{Verdict: VerdictNever, Class: "rejected", Text: "no"}, StandingRefused, func(a attempt) bool { return final(a.err, TypeRejected) }},
		{Answer{Verdict: VerdictUnknown, Class: "cut_off"}, StandingUnknown, func(a attempt) bool {
			return a.err == nil && a.result.Unknown != nil && *a.result.Unknown == Unknown{"cut_off", 1} && a.result.SESMessageID == ""
		}},
	} {
		t.Run(c.answer.Verdict.String(), func(t *testing.T) {
			b, basket := &notebook{}, &outbasket{answer: &c.answer}
			if got := try(t, b, basket, nil); !c.check(got) {
				t.Errorf("%+v", got)
			}
			if len(b.records) != 1 || b.records[0].Standing != c.standing || b.records[0].Class != c.answer.Class {
				t.Errorf("records %+v", b.records)
			}
		})
	}
}

// A claim whose answer is lost is asked for again with the same token.
func TestAClaimIsRepeatedWithItsToken(t *testing.T) {
	quickly(t)
	b, basket := &notebook{claimErr: func(n int) error { return map[bool]error{true: errAway}[n == 1] }}, &outbasket{}
	if got := try(t, b, basket, nil); got.err != nil {
		t.Fatal(got.err)
	}
	if len(b.claims) != 2 || b.claims[0].Token != b.claims[1].Token || len(basket.mails) != 1 {
		t.Errorf("%+v, %d mails", b.claims, len(basket.mails))
	}
}

// While the ledger is away nothing is sent; a claim that may stand all the same is freed by the next attempt.
func TestNoLedgerNoMail(t *testing.T) {
	quickly(t)
	b, basket := &notebook{claimErr: always(errAway)}, &outbasket{}
	first := try(t, b, basket, nil)
	var app *temporal.ApplicationError
	if !errors.As(first.err, &app) || app.NonRetryable() || app.Type() != TypeLedger || len(basket.mails) != 0 {
		t.Fatalf("%v, %d mails", first.err, len(basket.mails))
	}
	if first.heartbeat == nil || first.heartbeat.Standing != StandingFree || first.heartbeat.Token != b.claims[0].Token {
		t.Fatalf("left for the next attempt: %+v", first.heartbeat)
	}
	next := &notebook{}
	if second := try(t, next, basket, first.heartbeat); second.err != nil || len(basket.mails) != 1 {
		t.Errorf("%v, %d mails", second.err, len(basket.mails))
	}
	if len(next.records) != 2 || next.records[0] != *first.heartbeat || next.claims[0].Token == first.heartbeat.Token {
		t.Errorf("%+v", next.records)
	}
}

// SES has answered and the ledger is away: the next attempt writes the answer. (scenario 43)
func TestAKnownOutcomeOutlivesTheLedgersOutage(t *testing.T) {
	quickly(t)
	b, basket := &notebook{recordErr: always(errAway)}, &outbasket{}
	first := try(t, b, basket, nil)
	if first.err == nil || first.heartbeat == nil || first.heartbeat.Standing != StandingDone || first.heartbeat.ResultID != "ses-1" {
		t.Fatalf("%v, left %+v", first.err, first.heartbeat)
	}
	still := &notebook{recordErr: always(errAway)} // away for another attempt
	second := try(t, still, basket, first.heartbeat)
	if second.err == nil || second.heartbeat == nil || *second.heartbeat != *first.heartbeat || len(still.claims) != 0 {
		t.Fatalf("%v, left %+v, %d claims", second.err, second.heartbeat, len(still.claims))
	}
	back := &notebook{entry: Entry{Standing: StandingDone, ResultID: "ses-1"}}
	third := try(t, back, basket, second.heartbeat)
	if third.err != nil || third.result.SESMessageID != "ses-1" || !slices.Equal(back.records, []known{*first.heartbeat}) || len(basket.mails) != 1 {
		t.Errorf("%+v, records %+v, %d mails", third, back.records, len(basket.mails))
	}
}

// An attempt that was superseded has nothing more to say.
func TestASupersededOutcomeEndsTheQuestion(t *testing.T) {
	b, basket := &notebook{recordErr: func(n int) error { return map[bool]error{true: ErrSuperseded}[n == 1] }}, &outbasket{}
	if got := try(t, b, basket, &known{Step: "mail", Token: Token{1}, Standing: StandingFree}); got.err != nil || len(basket.mails) != 1 {
		t.Errorf("%v, %d mails", got.err, len(basket.mails))
	}
}

func TestKeysHaveBounds(t *testing.T) {
	for _, step := range []string{"", strings.Repeat("s", 65)} {
		in := welcome
		in.Step = step
		basket := &outbasket{}
		if _, err := send(t, builtin(t, basket), in, welcomePayload); !final(err, TypeInvalidKey) || len(basket.mails) != 0 {
			t.Errorf("step of %d bytes: %v", len(step), err)
		}
	}
}
