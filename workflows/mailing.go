package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// mailing sends the mails of one workflow, and parks where nobody knows whether one was sent.
type mailing struct {
	*Parking
	payload converter.RawValue
	policy  Policy
	// underWay ends the sends that are under way, in the order of their beginnings; withdrawn says that they were ended.
	underWay  []*underWay
	withdrawn bool
	// begun says that the first mail was asked for; early, that a person had ended the wait before it came.
	begun, early bool
	wait         *wait  // that a person can end
	cancelled    *Order // nothing more is sent
}

type underWay struct {
	step      string
	recipient int
	end       workflow.CancelFunc
	again     bool // it was ended to be sent at once
}

// newMailing makes the mailing of a workflow, which calls it first.
func newMailing(ctx workflow.Context, payload converter.RawValue, msg schemas.Envelope, policy Policy) (*mailing, error) {
	if len(payload.Payload().GetData()) > activities.MaxInline {
		payload = activities.FromHistory() // a large payload is not repeated in each send
	}
	parking, err := NewParking(ctx, msg)
	if err != nil {
		return nil, err
	}
	m := &mailing{Parking: parking, payload: payload, policy: policy}
	return m, m.control(ctx)
}

// sendAll sends one mail to each recipient, all at once, and waits for every one: a failing one neither repeats nor blocks
// the others. It fails where any has failed for good. A step names the mail among those of the workflow, and is used once.
func (m *mailing) sendAll(ctx workflow.Context, step string, to []activities.Address) (Result, error) {
	if len(to) == 0 { // nothing would be sent, nothing checked, and the message be lost as a success
		return Result{}, invalid("the payload names no recipient")
	}
	if err := m.use(step); err != nil {
		return Result{}, err
	}
	m.begun = true
	m.say(ctx, underWayWords)
	result := Result{Sends: make([]Send, len(to))}
	var errs []error
	all := workflow.NewWaitGroup(ctx)
	for i, address := range to {
		all.Add(1)
		workflow.GoNamed(ctx, fmt.Sprintf("%s %d", step, i+1), func(ctx workflow.Context) {
			defer all.Done()
			var err error
			if result.Sends[i], err = m.send(ctx, step, address, i+1, len(to)); err != nil {
				errs = append(errs, err)
			}
		})
	}
	all.Wait(ctx)
	result.Cancelled = m.cancelled
	m.say(ctx, outcome(result.Sends, m.cancelled))
	return result, failure(result, errs)
}

// send sends one mail, until it is known what became of it.
func (m *mailing) send(ctx workflow.Context, step string, to activities.Address, i, n int) (Send, error) {
	var a *activities.Activities
	send := Send{Recipient: i}
	if m.cancelled != nil {
		send.Withdrawn = true
		return send, nil
	}
	in := activities.SendInput{MessageID: m.msg.MessageID, EventType: m.msg.EventType, Step: step, To: to}
	for {
		var r activities.SendResult
		again, err := m.attempt(ctx, sendOptions(step, i, n), in, i, &r)
		if again && !m.withdrawn && ctx.Err() == nil && (temporal.IsCanceledError(err) || notRetried(err)) {
			continue
		}
		if m.withdrawn && err != nil && ctx.Err() == nil {
			var cutOff *temporal.TimeoutError
			switch {
			case temporal.IsCanceledError(err), notRetried(err) && !errors.As(err, &cutOff):
				send.Withdrawn = true
				return send, nil
			case notRetried(err):
				continue // its worker died: the ledger tells in the next attempt what is known
			}
		}
		if err != nil {
			send.Error = cause(err)
			return send, err
		}
		if r.Unknown == nil {
			send.SESMessageID = r.SESMessageID
			return send, nil
		}
		// The first unknown of a key, whatever run it came in, is generation 0's.
		if m.policy != Resend || r.Unknown.Next > 1 {
			resolution, err := m.park(ctx, step, i, n, *r.Unknown)
			if err != nil {
				send.Error = cause(err)
				return send, err
			}
			if send.Resolved = &resolution; resolution.Decision == DecisionSent {
				err := ledgerCall(ctx, a.Settle, in)
				if err != nil {
					send.Error = cause(err)
				}
				return send, err
			}
		}
		in.Generation = r.Unknown.Next
	}
}

// attempt asks for a mail once. A withdrawal ends it where no worker has begun; else it waits for what becomes of it. again says
// that a person wants it sent at once.
func (m *mailing) attempt(ctx workflow.Context, options workflow.ActivityOptions, in activities.SendInput, i int, r *activities.SendResult) (again bool, err error) {
	var a *activities.Activities
	options.WaitForCancellation = true
	ctx, end := workflow.WithCancel(workflow.WithActivityOptions(ctx, options))
	u := &underWay{step: in.Step, recipient: i, end: end}
	m.underWay = append(m.underWay, u)
	err = workflow.ExecuteActivity(ctx, a.Send, in, m.payload).Get(ctx, r)
	m.underWay = slices.DeleteFunc(m.underWay, func(v *underWay) bool { return v == u })
	return u.again, err
}

// notRetried says that an attempt failed, and that the withdrawal kept Temporal from the next.
func notRetried(err error) bool {
	var a *temporal.ActivityError
	return errors.As(err, &a) && a.RetryState() == enumspb.RETRY_STATE_CANCEL_REQUESTED
}

// changeWithdraw marks the runs in which sends were withdrawn.
const changeWithdraw = "withdraw"

// withdrawOnce takes back the sends that are under way at the time when that holds.
func (m *mailing) withdrawOnce(ctx workflow.Context, holds func() bool) {
	workflow.GoNamed(ctx, "withdraw", func(ctx workflow.Context) {
		if err := workflow.Await(ctx, func() bool { return holds() && len(m.underWay) > 0 }); err != nil {
			return // the workflow was cancelled, and its sends with it
		}
		if workflow.GetVersion(ctx, changeWithdraw, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
			return
		}
		m.withdrawn = true
		for _, u := range slices.Clone(m.underWay) {
			u.end()
		}
	})
}

// besideOptions are for what is no mail: it must not wait where sending is stopped, and takes none of its rate.
func besideOptions(summary string) workflow.ActivityOptions {
	o := sendOptions("", 0, 0)
	o.TaskQueue, o.Summary = schemas.WorkflowTaskQueue, summary
	return o
}

// sendOptions let a send be retried for as long as an outage lasts.
func sendOptions(step string, i, n int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           schemas.SendTaskQueue,
		StartToCloseTimeout: activities.StartToClose,
		Summary:             fmt.Sprintf("%s %d of %d", step, i, n),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 2 * time.Minute,
		},
	}
}
