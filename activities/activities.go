// Package activities holds what workflows let happen in the outside world: checking a payload, rendering a mail and handing
// it to the provider. An activity is retried by Temporal until it succeeds or says that it never will.
//
// It sees the provider as a small interface. What decides when to send, to whom and again is package workflows.
package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/templates"
)

// Address is a mailbox. Name may be empty.
type Address struct {
	Email string `json:"email"`
	Name  string `json:"name,omitempty"`
}

// Canonical is the form that spellings of one mailbox have in common. Domains know no letter case (RFC 4343). Local parts do
// by RFC 5321, but no mailbox provider tells two apart by it; folding theirs sends one mail where exactness would send two
// to one person. Only ASCII letters of the local part are folded: SES takes no others there. It is for comparing, not for
// sending.
func (a Address) Canonical() string {
	at := strings.LastIndexByte(a.Email, '@')
	if at < 0 {
		return a.Email
	}
	local := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, a.Email[:at])
	return local + strings.ToLower(a.Email[at:])
}

// Mail is one rendered mail to one recipient.
type Mail struct {
	MessageID, EventType string
	To                   Address
	templates.Content
}

// Mailer hands mails to a provider.
type Mailer interface {
	// Send tries once, with a deadline of its own: at most one request leaves.
	Send(ctx context.Context, m Mail) Answer
}

// Types of the application errors, as the Temporal web UI shows them. The first five no retry can change.
const (
	TypeInvalidPayload = "InvalidPayload" // the payload does not fit the event type's schema
	TypeNotRendered    = "NotRendered"    // a template is missing, or a variable of it
	TypeRejected       = "Rejected"       // the provider refuses the mail
	TypeKeyReused      = "KeyReused"      // the ledger has another content under this key
	TypeInvalidKey     = "InvalidKey"     // the step's name cannot be a key
	TypeNotSent        = "NotSent"        // not sent, and tried again
	TypeStopped        = "Stopped"        // not sent, like every other mail until the cause is put right
	TypeLedger         = "Ledger"         // the ledger cannot be read or written
)

// Activities holds what the activities need. All fields are required.
type Activities struct {
	Mailer    Mailer
	Ledger    Ledger
	Templates *templates.Set
	Payloads  *Payloads
}

// SendInput says which mail to send.
type SendInput struct {
	MessageID string `json:"message_id"`
	EventType string `json:"event_type"`
	// Step names this mail among those of the workflow to the same recipient: "mail", "reminder".
	Step string  `json:"step"`
	To   Address `json:"to"`
	// Generation is 0, and one more for each authorised repetition of a mail that may have been sent.
	Generation int `json:"generation,omitempty"`
}

// SendResult is what became of a send: it was sent, or nobody knows.
type SendResult struct {
	// SESMessageID is SES's ID of the mail; empty where Unknown.
	SESMessageID string `json:"ses_message_id,omitempty"`
	// Locale is that of the templates used; empty where an earlier attempt had sent the mail.
	Locale string `json:"locale,omitempty"`
	// Unknown says that the mail may have been sent.
	Unknown *Unknown `json:"unknown,omitempty"`
}

// Unknown is what a person, or a policy, needs to decide about a mail that may have been sent.
type Unknown struct {
	// Class says in a word what happened: no_answer, cut_off, server_error, expired …
	Class string `json:"class"`
	// Next is the generation that a repetition must ask for.
	Next int `json:"next"`
}

// Send checks payload against the schema of its event type, renders the mail and sends it, at most once for each
// generation of its key. Nothing half-rendered goes out.
// Where payload is FromHistory, the workflow's own is read.
func (a *Activities) Send(ctx context.Context, in SendInput, payload converter.RawValue) (SendResult, error) {
	raw, err := bytesOf(ctx, payload)
	if err != nil {
		return SendResult{}, err
	}
	data, err := a.Payloads.Decode(in.EventType, raw)
	if err != nil {
		return SendResult{}, never(TypeInvalidPayload, err)
	}
	locale, _ := data["locale"].(string) // the schema says that it is a string where it is there
	content, err := a.Templates.Render(in.EventType, locale, map[string]any{
		"payload": data,
		"to":      map[string]any{"email": in.To.Email, "name": in.To.Name},
		"step":    in.Step,
	})
	if err != nil {
		return SendResult{}, never(TypeNotRendered, err)
	}
	mail := Mail{MessageID: in.MessageID, EventType: in.EventType, To: in.To, Content: content}
	effect := &effect{
		ledger: a.Ledger,
		by:     time.Now().Add(StartToClose - recordTimeout - claimMargin),
		policy: Hold, // the workflow decides
		claim: Claim{
			Key: in.key(), Generation: in.Generation, For: StartToClose + claimMargin,
			// Not of the rendered text: a template that is corrected while a mail waits is no other mail.
			Content: digest([]byte(in.EventType), []byte(in.To.Canonical()), []byte(in.To.Name), raw),
		},
		try: func(ctx context.Context) Answer { return a.Mailer.Send(ctx, mail) },
	}
	result, err := effect.run(ctx)
	if err == nil && result.Unknown == nil {
		result.Locale = content.Locale
	}
	return result, err
}

// Check checks a payload against the schema of its event type, for a workflow that sends no mail.
func (a *Activities) Check(_ context.Context, eventType string, payload converter.RawValue) error {
	if _, err := a.Payloads.Decode(eventType, payload.Payload().GetData()); err != nil {
		return never(TypeInvalidPayload, err)
	}
	return nil
}

// Settle writes into the ledger that a mail which may have been sent was sent, as a person has said. Their word counts more than
// what the ledger has learned since; only an attempt that is under way must end first.
func (a *Activities) Settle(ctx context.Context, in SendInput) error {
	return a.Ledger.Settle(ctx, in.key())
}

// Authorise lets an effect of Once that may have happened be done once more, as a person has said. in names the message and the
// step, and the generation that the repetition is. Where it is not unknown any more nothing changes.
func (a *Activities) Authorise(ctx context.Context, in SendInput) error {
	err := a.Ledger.Authorise(ctx, in.key(), in.Generation)
	if errors.Is(err, ErrSuperseded) {
		return nil // the next attempt tells how it stands
	}
	return err
}

func (in SendInput) key() Key {
	return Key{MessageID: in.MessageID, Step: in.Step, Recipient: digest([]byte(in.To.Canonical()))}
}

func never(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}
