// Package explain puts together all that is known of one message: its row, its workflow with every attempt, and the ledger. It
// only reads, and shows neither a payload nor an address.
package explain

import "time"

// Report is the whole way of one message. Times are UTC.
type Report struct {
	MessageID string `json:"message_id"`
	// Summary says in a sentence how the message stands.
	Summary  string    `json:"summary"`
	Row      *Row      `json:"row,omitempty"`    // nil once a workflow has started, or where there never was one
	Failed   []Failed  `json:"failed,omitempty"` // oldest first
	Workflow *Workflow `json:"workflow,omitempty"`
	Ledger   []Entry   `json:"ledger,omitempty"`
	// Stops are those of sending that stand now, while the message has not ended.
	Stops []Stop `json:"sending_stops,omitempty"`
}

// Stop is a stop of sending. It holds up mails, and nothing else.
type Stop struct {
	Scope string    `json:"scope"` // all, or some workers' credentials
	Class string    `json:"class"`
	Text  string    `json:"text"`
	By    string    `json:"by,omitempty"` // the person who stopped it
	Since time.Time `json:"since"`
}

// Row is the message in outbox_messages.
type Row struct {
	EventType string     `json:"event_type"`
	Priority  int        `json:"priority"`
	Shard     int        `json:"shard"`
	Bytes     int        `json:"payload_bytes"`
	CreatedAt time.Time  `json:"created_at"`
	DeliverAt *time.Time `json:"deliver_at,omitempty"`
}

// Failed is the message in outbox_failed.
type Failed struct {
	EventType string    `json:"event_type"`
	Reason    string    `json:"reason"` // never_starts or id_reused
	Detail    string    `json:"detail"`
	FailedAt  time.Time `json:"failed_at"`
}

// Workflow is the last run of the message's workflow.
type Workflow struct {
	EventType string     `json:"event_type"`
	RunID     string     `json:"run_id"`
	Status    string     `json:"status"`          // Temporal's word: Running, Completed, Failed …
	State     string     `json:"state,omitempty"` // the search attribute OncepostState
	StartedAt time.Time  `json:"started_at"`
	DueAt     *time.Time `json:"due_at,omitempty"` // with a start delay: when the workflow begins
	ClosedAt  *time.Time `json:"closed_at,omitempty"`
	Details   string     `json:"details,omitempty"` // what it waits for, while it does
	URL       string     `json:"url,omitempty"`     // in the Temporal web UI
	// Failing is how often in a row the workers have failed at the workflow itself, which they should not.
	Failing int    `json:"failing_workflow_tasks,omitempty"`
	Steps   []Step `json:"steps"`
}

// Step is one thing that the workflow's history tells: an activity, a decision of a person, a timer, the end.
type Step struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"`    // "mail 1 of 1", "resolve", "timer", "end"
	Outcome string    `json:"outcome"` // done, retrying, failed, waiting …
	Attempt int       `json:"attempt,omitempty"`
	Class   string    `json:"error_class,omitempty"`
	Error   string    `json:"error,omitempty"`
	// NextAt is when the next attempt is due.
	NextAt *time.Time `json:"next_at,omitempty"`
}

// Entry is a row of the ledger.
type Entry struct {
	Step       string    `json:"step"`
	Recipient  string    `json:"recipient_hash"` // the first 8 hexadecimal digits
	Generation int       `json:"generation"`
	State      string    `json:"state"`
	ResultID   string    `json:"ses_message_id,omitempty"`
	ErrorClass string    `json:"error_class,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
}
