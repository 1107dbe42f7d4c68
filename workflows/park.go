package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// UpdateResolve is the name of the update that says what became of a parked mail. Its argument is a Resolution.
const UpdateResolve = "resolve"

// Decisions of a Resolution.
const (
	DecisionSent   = "sent"   // it was sent; nothing more is done
	DecisionResend = "resend" // it is sent once more
)

// Resolution is a person's decision about a mail of which nobody knows whether it was sent.
type Resolution struct {
	// Decision is "sent" or "resend".
	Decision string `json:"decision"`
	// By says who decides, and Why for what reason. Both are required, and kept in the workflow's history.
	By  string `json:"by"`
	Why string `json:"why"`
	// Recipient is the number of the mail that is meant; 0 where only one is parked.
	Recipient int `json:"recipient,omitempty"`
}

// maxWords bounds who and why.
const maxWords = 1000

// parked is one mail that waits for a person.
type parked struct {
	step       string
	i, n       int
	unknown    activities.Unknown
	resolution *Resolution
}

func (m *mailing) handleResolve(ctx workflow.Context) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, UpdateResolve, func(_ workflow.Context, r Resolution) error {
		m.meant(r.Recipient).resolution = &r
		return nil
	}, workflow.UpdateHandlerOptions{
		Description: "Says what became of a mail that may have been sent: decision sent or resend, by whom and why.",
		Validator:   m.validate,
	})
}

// validate refuses an update before it is written into the history.
func (m *mailing) validate(r Resolution) error {
	switch {
	case r.Decision != DecisionSent && r.Decision != DecisionResend:
		return fmt.Errorf("decision must be %s or %s", DecisionSent, DecisionResend)
	case strings.TrimSpace(r.By) == "" || strings.TrimSpace(r.Why) == "":
		return errors.New("by and why are required: say who decides, and for what reason")
	case len(r.By) > maxWords || len(r.Why) > maxWords:
		return fmt.Errorf("by and why may have %d bytes each", maxWords)
	case len(m.open()) == 0:
		return errors.New("nothing is parked: there is nothing to resolve")
	case r.Recipient == 0 && len(m.open()) > 1:
		return fmt.Errorf("%d mails are parked: say which recipient is meant", len(m.open()))
	case m.meant(r.Recipient) == nil:
		return fmt.Errorf("the mail to recipient %d is not parked", r.Recipient)
	}
	return nil
}

// open are the parked mails that nobody has resolved yet.
func (m *mailing) open() (open []*parked) {
	for _, p := range m.parked {
		if p.resolution == nil {
			open = append(open, p)
		}
	}
	return open
}

// meant is the parked mail with this recipient's number; with 0 the only one.
func (m *mailing) meant(recipient int) *parked {
	for _, p := range m.open() {
		if recipient == 0 || p.i == recipient {
			return p
		}
	}
	return nil
}

// park waits until a person says what became of a mail, and shows meanwhile what it waits for.
func (m *mailing) park(ctx workflow.Context, step string, i, n int, u activities.Unknown) (Resolution, error) {
	p := &parked{step: step, i: i, n: n, unknown: u}
	m.parked = append(m.parked, p)
	if err := m.show(ctx); err != nil {
		return Resolution{}, err
	}
	if err := workflow.Await(ctx, func() bool { return p.resolution != nil }); err != nil {
		return Resolution{}, err // cancelled
	}
	return *p.resolution, m.show(ctx)
}

// show sets the search attribute, where it changes, and the details that a person sees in the web UI.
func (m *mailing) show(ctx workflow.Context) error {
	open, state, text := m.open(), schemas.StateSending, ""
	if len(open) > 0 {
		state, text = schemas.StateParked, details(open, m.msg.MessageID)
	}
	workflow.SetCurrentDetails(ctx, text)
	return m.setState(ctx, state)
}

// setState upserts only what changes: each upsert is an event, and an action.
func (m *mailing) setState(ctx workflow.Context, state string) error {
	if state == m.state {
		return nil
	}
	m.state = state
	return setState(ctx, state)
}

// details says in words what happened, what is at stake and what to do.
func details(open []*parked, id string) string {
	text := "**Parked: nobody knows whether a mail was sent.**\n\n"
	for _, p := range open {
		text += fmt.Sprintf("- %s %d of %d: %s\n", p.step, p.i, p.n, happened(p.unknown.Class))
	}
	text += "\nSending it again may mail the recipient twice; not sending it may mean that they never hear of it. " +
		"Look for the message ID `" + id + "` among SES's events (tag `message_id`), or ask the recipient. Then say what is true:\n\n"
	quoted := "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	for _, decision := range []string{DecisionSent, DecisionResend} {
		text += "    oncepost resolve " + quoted + " " + decision + " --by NAME --why REASON\n"
	}
	return text + "\nor send the update `resolve` from this page. Until then nothing is sent."
}

// happened puts an error class of the ledger into words.
func happened(class string) string {
	switch class {
	case "no_answer":
		return "SES did not answer in time"
	case "cut_off":
		return "the connection broke before SES had answered"
	case "server_error":
		return "SES failed while it worked on the mail"
	case "unreadable_answer":
		return "SES's answer could not be read"
	case "expired":
		return "the worker ended in the middle of the send"
	}
	return class
}
