package starter

import "context"

// Names of the conditions that a relay reports.
const (
	// CondDatabase: the database cannot be reached, or cannot be written to.
	CondDatabase = "database_away"
	// CondTemporal: Temporal cannot be reached, or is overloaded.
	CondTemporal = "temporal_away"
	// CondMisconfigured: starts are refused for a reason that no single message is to blame for. Nothing is moved; the
	// relay has stopped starting and tries again by itself.
	CondMisconfigured = "misconfigured"
	// CondFailed: a message was moved to outbox_failed, because it can never start.
	CondFailed = "message_failed"
	// CondNotMoved: a message that can never start cannot be moved to outbox_failed either.
	CondNotMoved = "message_not_moved"
	// CondIDReused: a message was moved to outbox_failed, because its ID was used for another message before.
	CondIDReused = "id_reused"
)

// Condition is something that a person should know.
type Condition struct {
	Name string
	// Active is false when the condition has passed. CondFailed and CondIDReused do not pass. CondDatabase may be reported
	// once more while it is active, when it turns out that the server is read-only.
	Active bool
	// Detail says what was found and what to do. It holds no payload and no address.
	Detail string
	// MessageID is set where one message is concerned.
	MessageID string
}

func (c Config) log(cond Condition) {
	level := c.Logger.ErrorContext
	if !cond.Active {
		level = c.Logger.InfoContext
	}
	args := []any{"condition", cond.Name, "active", cond.Active, "detail", cond.Detail}
	if cond.MessageID != "" {
		args = append(args, "message_id", cond.MessageID)
	}
	level(context.Background(), "relay condition", args...)
}
