package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/schemas"
)

// What a person can ask of a workflow that sends mails, beside [UpdateResolve]. The argument of the updates is an [Order].
const (
	// UpdateSendNow ends the wait for deliver_at, for the reminder, or for the next attempt.
	UpdateSendNow = "send_now"
	// UpdateCancelSend takes back every mail that no worker has begun to send. The workflow completes.
	UpdateCancelSend = "cancel_send"
	// QueryState answers with a [Status].
	QueryState = "state"
)

// Order says who asks for something, and why. Both are required, and kept in the workflow's history.
type Order struct {
	By  string `json:"by"`
	Why string `json:"why"`
}

// validate refuses an order before it is written into the history.
func (o Order) validate() error {
	switch {
	case strings.TrimSpace(o.By) == "" || strings.TrimSpace(o.Why) == "":
		return errors.New("by and why are required: say who decides, and for what reason")
	case len(o.By) > maxWords || len(o.Why) > maxWords:
		return fmt.Errorf("by and why may have %d bytes each", maxWords)
	}
	return nil
}

// Status is what the query `state` answers. It holds no address.
type Status struct {
	// State is scheduled, sending, waiting or parked, as the search attribute has it.
	State string `json:"state"`
	// Until is when the wait for deliver_at or for the reminder ends.
	Until *time.Time `json:"until,omitempty"`
	// UnderWay are the mails that a worker sends, or will send.
	UnderWay []Effect `json:"under_way,omitempty"`
	// Parked are the effects of which nobody knows whether they have happened.
	Parked []Effect `json:"parked,omitempty"`
	// Cancelled is the order after which nothing more is sent.
	Cancelled *Order `json:"cancelled,omitempty"`
}

// Effect is one mail, or an effect that is none.
type Effect struct {
	Step      string `json:"step"`
	Recipient int    `json:"recipient,omitempty"` // 1 for the first; 0 where the effect is no mail
	// Class says of a parked effect what happened: no_answer, cut_off, server_error, unreadable_answer, unsure or expired.
	Class string `json:"class,omitempty"`
}

// wait is one that a person can end.
type wait struct {
	until time.Time
	state string
	over  bool
}

// control makes the handlers of what a person can ask.
func (m *mailing) control(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateSendNow, func(workflow.Context, Order) error {
		m.hurry()
		return nil
	}, workflow.UpdateHandlerOptions{
		Description: "Ends the wait for deliver_at, for the reminder, or for the next attempt: the mail is sent now. Say by whom and why.",
		Validator:   m.mayHurry,
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateCancelSend, func(_ workflow.Context, o Order) error {
		m.cancel(o)
		return nil
	}, workflow.UpdateHandlerOptions{
		Description: "Takes back every mail that no worker has begun to send; the workflow completes. Say by whom and why.",
		Validator:   m.mayCancel,
	})
	if err != nil {
		return err
	}
	return workflow.SetQueryHandlerWithOptions(ctx, QueryState, func() (Status, error) { return m.status(), nil },
		workflow.QueryHandlerOptions{Description: "What the message waits for: its state, until when, what is under way, and what is parked."})
}

func (m *mailing) mayHurry(o Order) error {
	if err := o.validate(); err != nil {
		return err
	}
	return m.left("nothing waits: there is nothing to send now")
}

func (m *mailing) mayCancel(o Order) error {
	if err := o.validate(); err != nil {
		return err
	}
	return m.left("nothing is left to cancel")
}

// left refuses where no mail is still to be sent.
func (m *mailing) left(none string) error {
	switch {
	case m.cancelled != nil:
		return fmt.Errorf("it was cancelled before, by %s", m.cancelled.By)
	case m.wait != nil || len(m.underWay) > 0 || !m.begun:
		return nil
	case len(m.open()) > 0:
		return errors.New("it is parked: nobody knows whether it was sent. Say with the update resolve what is true")
	}
	return errors.New(none)
}

// hurry ends what the workflow waits for. A send that a worker has begun goes on.
func (m *mailing) hurry() {
	if m.wait == nil {
		m.early = !m.begun
	} else {
		m.wait.over = true
	}
	for _, u := range slices.Clone(m.underWay) {
		u.again = true
		u.end()
	}
}

// cancel takes back what no worker has begun to send.
func (m *mailing) cancel(o Order) {
	m.cancelled, m.withdrawn = &o, true
	if m.wait != nil {
		m.wait.over = true
	}
	for _, u := range slices.Clone(m.underWay) {
		u.end()
	}
}

// awaitUntil waits until a time, unless a person ends the wait or something else does, which it then returns.
func (m *mailing) awaitUntil(ctx workflow.Context, until time.Time, state string, ended func() bool) (bool, error) {
	w := &wait{until: until, state: state, over: m.early}
	m.say(ctx, waiting(w, m.msg.MessageID))
	m.wait, m.early = w, false
	defer func() { m.wait = nil }()
	_, err := workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), func() bool { return w.over || m.cancelled != nil || ended() })
	return ended(), err
}

// awaitDue is the wait for deliver_at, which a person can end.
func (m *mailing) awaitDue(ctx workflow.Context) error {
	due, delayed := dueAt(ctx, m.msg)
	if !delayed {
		return nil
	}
	if due.After(workflow.Now(ctx)) {
		if _, err := m.awaitUntil(ctx, due, schemas.StateScheduled, func() bool { return false }); err != nil {
			return err
		}
	}
	return setState(ctx, schemas.StateSending)
}

func (m *mailing) status() Status {
	s := Status{State: m.state, Cancelled: m.cancelled}
	if m.wait != nil {
		s.State, s.Until = m.wait.state, &m.wait.until
	}
	for _, u := range m.underWay {
		s.UnderWay = append(s.UnderWay, Effect{Step: u.step, Recipient: u.recipient})
	}
	for _, p := range m.open() {
		s.Parked = append(s.Parked, Effect{Step: p.step, Recipient: p.i, Class: p.unknown.Class})
	}
	return s
}
