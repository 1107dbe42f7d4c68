// Package activities holds what workflows let happen in the outside world: checking a payload, rendering a mail and handing
// it to the provider. An activity is retried by Temporal until it succeeds or says that it never will.
//
// It sees the provider as a small interface. What decides when to send, to whom and again is package workflows.
package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/templates"
)

// Address is a mailbox. Name may be empty.
type Address struct {
	Email string `json:"email"`
	Name  string `json:"name,omitempty"`
}

// Mail is one rendered mail to one recipient.
type Mail struct {
	MessageID, EventType string
	To                   Address
	templates.Content
}

// Mailer hands mails to a provider.
type Mailer interface {
	// Send tries once, with a deadline of its own, and returns the provider's ID of the accepted mail. An error that
	// matches ErrNever means that this mail will never be accepted; any other is tried again. The error's text must
	// hold no address.
	Send(ctx context.Context, m Mail) (providerID string, err error)
}

// ErrNever is matched by the errors of a Mailer that no retry can change.
var ErrNever = errors.New("the provider refuses this mail for good")

// Types of the application errors that no retry can change, as the Temporal web UI shows them.
const (
	TypeInvalidPayload = "InvalidPayload" // the payload does not fit the event type's schema
	TypeNotRendered    = "NotRendered"    // a template is missing, or a variable of it
	TypeRejected       = "Rejected"       // the provider refuses the mail
)

// Activities holds what the activities need. All fields are required.
type Activities struct {
	Mailer    Mailer
	Templates *templates.Set
	Payloads  *Payloads
}

// SendInput says which mail to send.
type SendInput struct {
	MessageID string  `json:"message_id"`
	EventType string  `json:"event_type"`
	To        Address `json:"to"`
}

// SendResult is what became of a send.
type SendResult struct {
	// SESMessageID is SES's ID of the mail.
	SESMessageID string `json:"ses_message_id"`
	// Locale is that of the templates used.
	Locale string `json:"locale"`
}

// Send checks payload against the schema of its event type, renders the mail and sends it. Nothing half-rendered goes out.
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
	})
	if err != nil {
		return SendResult{}, never(TypeNotRendered, err)
	}
	id, err := a.Mailer.Send(ctx, Mail{MessageID: in.MessageID, EventType: in.EventType, To: in.To, Content: content})
	if errors.Is(err, ErrNever) {
		return SendResult{}, never(TypeRejected, err)
	}
	if err != nil {
		return SendResult{}, fmt.Errorf("send: %w", err)
	}
	return SendResult{SESMessageID: id, Locale: content.Locale}, nil
}

func never(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}
