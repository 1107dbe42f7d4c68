package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
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
	// Recipient is the number of the mail that is meant, and Step its name among those of the workflow, where more than one
	// effect is parked.
	Recipient int    `json:"recipient,omitempty"`
	Step      string `json:"step,omitempty"`
}

// maxWords bounds who and why.
const maxWords = 1000

// Parking is where a workflow waits for a person while nobody knows whether an effect has happened. The mail workflows have
// one; a workflow of its own that calls activities guarded by [activities.Once] makes one with [NewParking].
type Parking struct {
	msg    schemas.Envelope
	parked []*parked       // in the order in which they came to it
	state  string          // the search attribute
	steps  map[string]bool // used in this run
	words  string          // what the workflow waits for while nothing is parked
}

// parked is one effect that waits for a person.
type parked struct {
	step       string
	i, n       int // which mail of how many; 0 for an effect that is no mail
	unknown    activities.Unknown
	resolution *Resolution
}

// NewParking makes the update with which a person resolves what is parked. A workflow calls it first, so that an update that
// comes too early is refused with a reason, and once.
func NewParking(ctx workflow.Context, msg schemas.Envelope) (*Parking, error) {
	p := &Parking{msg: msg, state: schemas.StateSending, steps: map[string]bool{}}
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateResolve, func(_ workflow.Context, r Resolution) error {
		p.meant(r)[0].resolution = &r
		return nil
	}, workflow.UpdateHandlerOptions{
		Description: "Says what became of an effect that may have happened: decision sent or resend, by whom and why.",
		Validator:   p.validate,
	})
	return p, err
}

// validate refuses an update before it is written into the history.
func (p *Parking) validate(r Resolution) error {
	if r.Decision != DecisionSent && r.Decision != DecisionResend {
		return fmt.Errorf("decision must be %s or %s", DecisionSent, DecisionResend)
	}
	if err := (Order{By: r.By, Why: r.Why}).validate(); err != nil {
		return err
	}
	if len(p.open()) == 0 {
		return errors.New("nothing is parked: there is nothing to resolve")
	}
	switch n := len(p.meant(r)); {
	case n > 1:
		return fmt.Errorf("%d are parked: say which step and recipient is meant", n)
	case n == 0 && r.Step != "":
		return fmt.Errorf("step %s with recipient %d is not parked", r.Step, r.Recipient)
	case n == 0:
		return fmt.Errorf("the mail to recipient %d is not parked", r.Recipient)
	}
	return nil
}

// open is what is parked and nobody has resolved yet.
func (p *Parking) open() (open []*parked) {
	for _, one := range p.parked {
		if one.resolution == nil {
			open = append(open, one)
		}
	}
	return open
}

// meant is what a resolution can mean.
func (p *Parking) meant(r Resolution) (meant []*parked) {
	for _, one := range p.open() {
		if (r.Recipient == 0 || one.i == r.Recipient) && (r.Step == "" || one.step == r.Step) {
			meant = append(meant, one)
		}
	}
	return meant
}

// changeReport marks the runs that report what they park.
const changeReport = "report_parked"

// park waits until a person says what has happened, and tells and shows meanwhile what it waits for.
func (p *Parking) park(ctx workflow.Context, step string, i, n int, u activities.Unknown) (Resolution, error) {
	one := &parked{step: step, i: i, n: n, unknown: u}
	p.parked = append(p.parked, one)
	if err := p.show(ctx); err != nil {
		return Resolution{}, err
	}
	if workflow.GetVersion(ctx, changeReport, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		p.report(ctx, one)
	}
	if err := workflow.Await(ctx, func() bool { return one.resolution != nil }); err != nil {
		return Resolution{}, err // cancelled
	}
	return *one.resolution, p.show(ctx)
}

// report tells people. It runs in the worker of the workflows: the one of the sends may have been stopped. The workflow stays
// parked, and shows it, whether a report got through or not.
func (p *Parking) report(ctx workflow.Context, one *parked) {
	var r *activities.Reports
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: reportTimeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	}), r.ReportParked, activities.Parked{
		MessageID: p.msg.MessageID, EventType: p.msg.EventType, Step: one.step, Recipient: one.i, Class: one.unknown.Class, What: happened(one.unknown.Class),
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Error("a parked effect could not be reported", "step", one.step, "error", err)
	}
}

const reportTimeout = 30 * time.Second

// show sets the search attribute, where it changes, and the details that a person sees in the web UI.
func (p *Parking) show(ctx workflow.Context) error {
	open, state, text := p.open(), schemas.StateSending, p.words
	if len(open) > 0 {
		state, text = schemas.StateParked, details(open, p.msg.MessageID)
	}
	workflow.SetCurrentDetails(ctx, text)
	return p.setState(ctx, state)
}

// say shows in the web UI what the workflow waits for. It costs no event: the workers answer for it.
func (p *Parking) say(ctx workflow.Context, words string) {
	p.words = words
	if len(p.open()) == 0 {
		workflow.SetCurrentDetails(ctx, words)
	}
}

// setState upserts only what changes: each upsert is an event, and an action.
func (p *Parking) setState(ctx workflow.Context, state string) error {
	if state == p.state {
		return nil
	}
	p.state = state
	return setState(ctx, state)
}
