package schemas

import "encoding/json"

// Names that relay, workflows and worker agree on.
const (
	// WorkflowTaskQueue is where workflows run.
	WorkflowTaskQueue = "oncepost"
	// SendTaskQueue is where sends run, apart, so that their rate can be limited on the server.
	SendTaskQueue = "oncepost-send"
	// MemoHash is the memo field with the hash of a message's ID, type and payload, by which a message that comes twice is
	// told from one that reuses an ID.
	MemoHash = "oncepost_hash"
	// AttributeState is a Keyword search attribute: "scheduled" until deliver_at, then "sending"; "waiting" and "parked"
	// where a workflow says so.
	AttributeState = "OncepostState"
	// AttributeSince is a Datetime search attribute: when the state was set; at the start, when the message is due.
	AttributeSince = "OncepostSince"
)

// Values of AttributeState.
const (
	StateScheduled = "scheduled"
	StateSending   = "sending"
	StateWaiting   = "waiting"
	StateParked    = "parked"
)

// Envelope is what a workflow gets as its second argument. The first is the payload, byte for byte as it was stored.
type Envelope struct {
	MessageID string          `json:"message_id"`
	EventType string          `json:"event_type"`
	Headers   json.RawMessage `json:"headers,omitempty"`
	// DeliverAt is the row's deliver_at, in RFC 3339, where it has one.
	DeliverAt string `json:"deliver_at,omitempty"`
	// DelayMicros is how long after the workflow's start the message is due, in microseconds. A signal or an update ends
	// Temporal's own start delay early, so that a workflow must first wait for what remains of it.
	DelayMicros int64 `json:"delay_us,omitempty"`
	Priority    int   `json:"priority"`
	// CreatedAt is when the row was inserted, by the database's clock, in RFC 3339.
	CreatedAt string `json:"created_at"`
}
