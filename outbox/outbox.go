// Package outbox is the table outbox_messages: [Enqueue] writes a message into it inside the caller's own transaction,
// and the relay's side reads pages of it, deletes what has started and moves away what never can.
//
// It needs nothing but the standard library, so that any service can import it, and it opens no connection, starts no
// transaction and retries nothing: those belong to the caller. Sending is not its job; the relay (package starter) turns
// each committed row into one Temporal workflow.
package outbox

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// Message is one event to announce. The zero value of every optional field means its default.
type Message struct {
	// ID is the permanent identity of the message and the workflow ID it gets: 1 to 128 printable ASCII characters
	// 0x21–0x7D without '?', case-sensitive. Give a natural key ("payment_failed:sub_9:2026-11") to make enqueueing
	// idempotent. Default: a new time-ordered UUID (version 7).
	ID string
	// EventType names the Temporal workflow type: 1 to 64 of [A-Za-z0-9_.-]. Required.
	EventType string
	// Payload is the event's data. A []byte or json.RawMessage is stored byte for byte; anything else goes through
	// json.Marshal. At most 1 MiB of JSON. Required.
	Payload any
	// Headers travel beside the payload ("traceparent", "tenant"). At most 8 KiB as JSON. Default: none.
	Headers map[string]string
	// DeliverAt is the instant before which the message must not be sent. Default: at once.
	DeliverAt time.Time
	// Priority is 1 (first) to 5; 1 and 2 take the express lane. Default: 3.
	Priority int
}

// Execer is what an enqueue needs of the caller's transaction: a *sql.Tx, or a *sql.Conn that is in a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Table is an outbox_messages table. The zero value is the one in the connection's own database.
type Table struct {
	// Database names another database of the same server that holds the table, so that it still takes part in the
	// caller's transaction. Default: the connection's.
	Database string
}

// name returns the table as SQL names it, with the database in front where one was given.
func (t Table) name(table string) string {
	if t.Database == "" {
		return table
	}
	return "`" + strings.ReplaceAll(t.Database, "`", "``") + "`." + table
}
