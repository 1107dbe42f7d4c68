// Package monitor sees to it that nothing stops silently. It reads the state of the whole pipeline (State), decides what of it a
// person must know (Fact), and tells them, once for all processes (Watch). It serves the state as a page, as JSON and as metrics.
//
// Every relay and worker writes a row of itself into the table processes (Beat), and watches the others: the death of any one of
// them, of Temporal or of the database is told by one that survives, on a way that needs none of them.
//
// It repairs nothing: stops, parked mails and failed messages have commands of their own. What it writes anywhere holds neither an
// address nor a payload.
package monitor

import (
	"time"
)

// State is the pipeline at one moment: what a person asks for first. Ages are in seconds, by the database's clock.
type State struct {
	// At is when it was read, by the database's clock, or by this machine's while the database is away.
	At       time.Time `json:"at"`
	Database Part      `json:"database"`
	Temporal Part      `json:"temporal"`
	Outbox   Outbox    `json:"outbox"`
	// Shards are the 32 parts of the outbox: by which relay each is read. Empty where no relay says so.
	Shards    []Shard   `json:"shards"`
	Processes []Process `json:"processes"`
	Workflows Workflows `json:"workflows"`
	Queues    []Queue   `json:"task_queues"`
	// Sends are the answers of SES since the workers that live began, by what they came to: sent, later, never, stop, unknown.
	Sends map[string]int64 `json:"sends"`
	// SentAgo is how long ago the latest mail was sent by a worker that lives. Null: none yet.
	SentAgo *float64 `json:"sent_seconds_ago"`
	Quota   *Quota   `json:"quota"`
	Stops   []Stop   `json:"stops"`
	// Conditions are what a person should know of, as this process sees it.
	Conditions []Condition `json:"conditions"`
	// Raised are the conditions that people have been told of, or are being told of, whoever saw them.
	Raised []Raised `json:"raised"`

	here    time.Duration   // for how long this process has seen a row waiting
	unknown map[string]bool // conditions that cannot be seen
}

// Condition is something that a person should know, while it lasts.
type Condition struct {
	Name    string `json:"name"`
	Subject string `json:"subject,omitempty"`
	Title   string `json:"title"`
	Detail  string `json:"detail"`
	// For is for how long it has lasted, as far as this process has seen.
	For float64 `json:"seconds"`
}

// Part is a server that the pipeline needs.
type Part struct {
	OK bool `json:"ok"`
	// Error says why not. It holds no password and no address of a person.
	Error string `json:"error,omitempty"`
	// Name is the database's, or the namespace's.
	Name string `json:"name,omitempty"`
}

// Outbox is what waits in the tables.
type Outbox struct {
	// Pending are the messages that no relay has started yet; exact up to 10,000, above that the server's estimate.
	Pending Count `json:"pending"`
	// Oldest is the age of the oldest row that is known of: of the first of each shard.
	Oldest float64 `json:"oldest_seconds"`
	// Waiting is for how long a row has been seen waiting, at least. A row that was committed late is old, and has not waited.
	Waiting float64 `json:"waiting_seconds"`
	// Failed are the messages in outbox_failed.
	Failed Count `json:"failed"`
	// Error says why all this but Waiting could not be read.
	Error string `json:"error,omitempty"`
}

// Count is a number of rows.
type Count struct {
	Rows  int64 `json:"rows"`
	Exact bool  `json:"exact"`
}

// Shard is one part of the outbox.
type Shard struct {
	Shard int    `json:"shard"`
	Owner string `json:"owner,omitempty"` // host:pid of a relay that lives
}

// Process is a relay, a worker or a watch.
type Process struct {
	ID      string    `json:"id"`
	Role    string    `json:"role"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started_at"`
	// SeenAgo is how long ago it wrote its row.
	SeenAgo float64 `json:"seen_seconds_ago"`
	// Alive says that this was not longer ago than the conditions' threshold of its role.
	Alive bool `json:"alive"`
	Published
}

// Published is what a process says of itself in its row. Ages count to the moment at which it was written.
type Published struct {
	Relay  *Relay  `json:"relay,omitempty"`
	Worker *Worker `json:"worker,omitempty"`
	// Sees are the conditions that hold as this process sees them, by their keys.
	Sees []string `json:"sees,omitempty"`
	// Waiting is for how long this process has seen a row waiting.
	Waiting float64 `json:"waiting_seconds,omitempty"`
}

// Relay is what a relay says of itself.
type Relay struct {
	Shards     []int   `json:"shards"`
	InFlight   int64   `json:"starts_in_flight"`
	Limit      int64   `json:"start_limit"`
	Started    int64   `json:"started"`
	Duplicates int64   `json:"duplicates"`
	Failed     int64   `json:"failed"`
	Retried    int64   `json:"retried"`
	Deleted    int64   `json:"deleted"`
	Polls      int64   `json:"polls"`
	ReadAgo    float64 `json:"read_seconds_ago"`
	// Waiting is for how long it has known a row that has not started.
	Waiting    float64  `json:"waiting_seconds"`
	StartedAgo *float64 `json:"started_seconds_ago"`
	// Conditions are those that the relay itself reports, by name, and what it says of them.
	Conditions map[string]string `json:"conditions,omitempty"`
}

// Worker is what a worker says of itself.
type Worker struct {
	TaskQueues []string         `json:"task_queues"`
	Sends      map[string]int64 `json:"sends"`
	SentAgo    *float64         `json:"sent_seconds_ago"`
	Quota      *Quota           `json:"quota,omitempty"`
}

// Quota is the SES account's.
type Quota struct {
	PerSecond float64 `json:"per_second"`
	// PerDay is how many mails the account may send in 24 hours; -1 is no limit.
	PerDay   float64 `json:"per_day"`
	SentLast float64 `json:"sent_last_24_hours"`
}

// Workflows are counts by Temporal's visibility, which lags by a second or so. Null: not known.
type Workflows struct {
	Running *int64 `json:"running"`
	Parked  *int64 `json:"parked"`
	// ParkedLong have been parked for longer than the threshold.
	ParkedLong *int64 `json:"parked_long"`
	// Stuck are sending, or have not begun, for longer than the threshold after they were due.
	Stuck *int64 `json:"stuck"`
	// TasksFail are those at whose code the workers fail, again and again: none knows the event type, or the code has changed.
	TasksFail *int64 `json:"workflow_tasks_failing"`
	// Failed have failed for good within the last hour.
	Failed *int64 `json:"failed_last_hour"`
}

// Queue is a task queue.
type Queue struct {
	Name string `json:"name"`
	// Kind is workflow or activity.
	Kind string `json:"kind"`
	// Backlog is about how many tasks wait, and BacklogAge for how long the oldest has.
	Backlog    int64   `json:"backlog"`
	BacklogAge float64 `json:"backlog_age_seconds"`
	// Workers are the processes that live and say that they serve it.
	Workers int `json:"workers"`
}

// Stop is a stop of sending.
type Stop struct {
	Scope string    `json:"scope"`
	Class string    `json:"class"`
	Cause string    `json:"cause"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
}

// Raised is a condition in the table ops_conditions.
type Raised struct {
	Name    string    `json:"name"`
	Subject string    `json:"subject,omitempty"`
	Detail  string    `json:"detail"`
	Since   time.Time `json:"since"`
	Told    bool      `json:"told"`

	telling bool // somebody is telling people just now
	event   bool // it has happened, and does not last
	over    bool // an event that does not count any more
}

// Roles of a Process.
const (
	RoleRelay  = "relay"
	RoleWorker = "worker"
	RoleWatch  = "watch"
)
