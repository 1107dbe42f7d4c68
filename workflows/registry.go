// Package workflows holds the workflow of each event type, and the registry that names them.
//
// Workflow code is deterministic: it takes its time from the workflow, and leaves every effect to activities.
// Add a type by writing its workflow as a named top-level function (or using [SendMail]) and one line in a registry.
package workflows

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/oncepost/oncepost/schemas"
)

// Type is one event type.
type Type struct {
	// Name is the event_type of the row and the workflow type in Temporal.
	Name string
	// Workflow is a func(workflow.Context, P, schemas.Envelope) (R, error). P is the payload: converter.RawValue for its
	// bytes, or a struct. It must be a top-level function.
	Workflow any
	// NoMail says that the type sends none, and so has no templates.
	NoMail bool
}

// Registry is a list of event types. The zero value is empty.
type Registry struct{ types []Type }

// Builtin returns the shipped event types.
func Builtin() Registry {
	return Registry{}.With(
		Type{Name: "welcome", Workflow: SendMail},
		Type{Name: "payment_failed", Workflow: PaymentFailed},
		Type{Name: "card_registered", Workflow: CardRegistered, NoMail: true},
	)
}

// With returns a registry that has types as well.
func (r Registry) With(types ...Type) Registry {
	return Registry{types: append(slices.Clip(r.types), types...)}
}

// Types returns the event types, in the order in which they were added.
func (r Registry) Types() []Type { return slices.Clone(r.types) }

var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]+\z`)

// Validate reports a name that cannot be an event_type or stands twice, and a type without a workflow.
func (r Registry) Validate() error {
	seen := map[string]bool{}
	for _, t := range r.types {
		switch {
		case !validName.MatchString(t.Name) || len(t.Name) > schemas.MaxEventType:
			return fmt.Errorf("workflows: event type %q must be 1 to %d of A-Z a-z 0-9 _ . -", t.Name, schemas.MaxEventType)
		case seen[t.Name]:
			return fmt.Errorf("workflows: event type %s is registered twice", t.Name)
		case t.Workflow == nil:
			return fmt.Errorf("workflows: event type %s has no workflow", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}
