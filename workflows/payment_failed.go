package workflows

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// SignalCardRegistered tells a payment_failed workflow that the card was registered again.
const SignalCardRegistered = "card_registered"

// defaultRemindAfter is when the reminder goes, where the payload does not say.
const defaultRemindAfter = 72 * time.Hour

// Versions of the workflow.
const (
	changeReminder = "reminder" // a reminder follows
	changeFolding  = "folding"  // letter case does not make two recipients; only runs that it concerns are marked
)

// PaymentFailed mails each of the payload's admins, and again after remind_after, unless the card was registered meanwhile.
// An address that stands twice, in whatever letter case, gets one mail.
func PaymentFailed(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope) (Result, error) {
	m, err := newMailing(ctx, payload, msg, Hold)
	if err != nil {
		return Result{}, err
	}
	admins, err := admins(payload)
	if err != nil {
		return Result{}, err
	}
	remindAfter, err := remindAfter(payload)
	if err != nil {
		return Result{}, err
	}
	registered := listen(ctx)
	if err := m.awaitDue(ctx); err != nil {
		return Result{}, err
	}
	if registered() {
		return Result{Answered: true}, nil
	}
	m.withdrawOnce(ctx, registered)
	to := recipients(ctx, admins)
	result, err := m.sendAll(ctx, "mail", to)
	if workflow.GetVersion(ctx, changeReminder, workflow.DefaultVersion, 1) == workflow.DefaultVersion || remindAfter == 0 {
		return result, err
	}
	return m.remind(ctx, result, err, to, remindAfter, registered)
}

// remind waits and mails again those whose first mail went out. failed is the first mails' error, which is kept.
func (m *mailing) remind(ctx workflow.Context, result Result, failed error, to []activities.Address, after time.Duration, registered func() bool) (Result, error) {
	var reached []activities.Address
	for i, send := range result.Sends {
		if send.Error == "" && !send.Withdrawn {
			reached = append(reached, to[i])
		}
	}
	if len(reached) == 0 || m.cancelled != nil {
		result.Answered = m.withdrawn && m.cancelled == nil
		return result, failed
	}
	if err := m.setState(ctx, schemas.StateWaiting); err != nil {
		return result, err
	}
	answered, err := m.awaitUntil(ctx, workflow.Now(ctx).Add(after), schemas.StateWaiting, registered)
	if err != nil {
		return result, err
	}
	result.Answered, result.Cancelled = answered, m.cancelled
	if answered || m.cancelled != nil {
		return result, failed
	}
	if err := m.setState(ctx, schemas.StateSending); err != nil {
		return result, err
	}
	reminded, err := m.sendAll(ctx, "reminder", reached)
	result.Reminders, result.Answered, result.Cancelled = reminded.Sends, m.withdrawn && m.cancelled == nil, m.cancelled
	if failed == nil {
		failed = err
	}
	return result, failed
}

// listen notes the signal, whenever it comes.
func listen(ctx workflow.Context) (registered func() bool) {
	came := false
	signals := workflow.GetSignalChannel(ctx, SignalCardRegistered)
	workflow.GoNamed(ctx, "listen", func(ctx workflow.Context) {
		signals.Receive(ctx, nil)
		came = true
	})
	return func() bool { return came || signals.Len() > 0 }
}

func remindAfter(payload converter.RawValue) (time.Duration, error) {
	p, err := read(payload)
	if err != nil {
		return 0, err
	}
	text, err := field[string](p, "remind_after")
	if err != nil || text == "" {
		return defaultRemindAfter, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, invalid("the payload's remind_after is not a duration such as 72h")
	}
	return d, nil
}

func admins(payload converter.RawValue) ([]activities.Address, error) {
	p, err := read(payload)
	if err != nil {
		return nil, err
	}
	list, err := field[[]object](p, "admins")
	if err != nil {
		return nil, err
	}
	all := make([]activities.Address, len(list))
	for i, o := range list {
		if all[i], err = address(o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// recipients are the addresses that differ in more than letter case; the first spelling counts.
func recipients(ctx workflow.Context, all []activities.Address) []activities.Address {
	exact := distinct(all, func(a activities.Address) string { return a.Email })
	folded := distinct(all, activities.Address.Canonical)
	if len(exact) == len(folded) || workflow.GetVersion(ctx, changeFolding, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return exact
	}
	return folded
}

// distinct drops the addresses by a key that stood before.
func distinct(all []activities.Address, key func(activities.Address) string) (out []activities.Address) {
	seen := map[string]bool{}
	for _, a := range all {
		if k := key(a); !seen[k] {
			seen[k] = true
			out = append(out, a)
		}
	}
	return out
}
