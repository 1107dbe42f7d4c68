package starter

// Class is what a start came to.
type Class int

// Every start ends in one of these.
const (
	// Started: the workflow exists now. The row is deleted.
	Started Class = iota
	// Duplicate: this very message was started before. The row is deleted.
	Duplicate
	// Reused: the ID belongs to a workflow that was started for something else. The row moves to outbox_failed.
	Reused
	// Never: Temporal refuses this message and always will. The row moves to outbox_failed, once it is certain that the
	// message is to blame and not the configuration.
	Never
	// Misconfigured: no start can succeed until a person changes something. Nothing moves; the relay stops starting and
	// probes.
	Misconfigured
	// Away: Temporal is away, or overloaded, or the error is unknown. Nothing is written; the start is tried again.
	Away
)

func (c Class) String() string {
	return [...]string{"started", "duplicate", "id_reused", "never", "misconfigured", "away"}[c]
}

// Outcome is a Class and, for all but Started and Duplicate, why.
type Outcome struct {
	Class Class
	// Reason is the error's text. It must not hold a payload or an address.
	Reason string
	// Certain says of Never that it was found without asking Temporal: the message is to blame.
	Certain bool
	// Overload says that the server asked for fewer requests.
	Overload bool
}

// settled says that the row need not be started any more.
func (o Outcome) settled() bool { return o.Class == Started || o.Class == Duplicate }
