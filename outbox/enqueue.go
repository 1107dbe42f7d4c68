package outbox

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Limits of one EnqueueMany: what stays well below the smallest default max_allowed_packet (MariaDB's 16 MiB).
const (
	MaxMessages     = 1000
	MaxMessagesSize = 4 << 20 // bytes of payloads and headers
)

// Enqueue writes m in tx and returns its ID. When tx commits the message will be started, when it rolls back it never was.
//
// A message that breaks the contract gives an *InvalidError before any SQL is sent. An ID that is still in the table gives a
// *DuplicateError; the transaction stays usable. Any other error is the driver's.
func Enqueue(ctx context.Context, tx Execer, m Message) (string, error) {
	return Table{}.Enqueue(ctx, tx, m)
}

// EnqueueMany writes all of ms with one statement and returns their IDs in order. It writes all of them or, on an error,
// none. At most 1,000 messages and 4 MiB of payloads and headers. Errors are as for [Enqueue].
func EnqueueMany(ctx context.Context, tx Execer, ms []Message) ([]string, error) {
	return Table{}.EnqueueMany(ctx, tx, ms)
}

// Enqueue is [Enqueue] for this table.
func (t Table) Enqueue(ctx context.Context, tx Execer, m Message) (string, error) {
	ids, err := t.EnqueueMany(ctx, tx, []Message{m})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// EnqueueMany is [EnqueueMany] for this table.
func (t Table) EnqueueMany(ctx context.Context, tx Execer, ms []Message) ([]string, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	if len(ms) > MaxMessages {
		return nil, fmt.Errorf("outbox: %d messages in one call: at most %d", len(ms), MaxMessages)
	}
	ids := make([]string, len(ms))
	size := 0
	var sql strings.Builder
	fmt.Fprintf(&sql, insertInto, t.name("outbox_messages"))
	for i, m := range ms {
		v, err := prepare(m)
		if err != nil {
			return nil, err
		}
		if size += len(v.payload) + len(v.headers); size > MaxMessagesSize && len(ms) > 1 {
			return nil, fmt.Errorf("outbox: more than %d bytes in one call: enqueue fewer messages at once", MaxMessagesSize)
		}
		if i > 0 {
			sql.WriteByte(',')
		}
		v.appendTo(&sql)
		ids[i] = v.id
	}
	if _, err := tx.ExecContext(ctx, sql.String()); err != nil {
		if isDuplicate(err) {
			return nil, &DuplicateError{MessageID: duplicateID(err, ids), Err: err}
		}
		return nil, fmt.Errorf("outbox: insert: %w", err)
	}
	return ids, nil
}

// insertInto makes the session's time zone UTC for this one statement: MariaDB reads the comment in front, MySQL the hint.
// FROM_UNIXTIME and the TIMESTAMP column then agree on the instant even in an hour that a local clock shows twice.
const insertInto = `/*M! SET STATEMENT time_zone='+00:00' FOR */ INSERT /*+ SET_VAR(time_zone='+00:00') */ INTO %s` +
	` (message_id, event_type, payload, headers, deliver_at, priority) VALUES `

// appendTo writes the values as hexadecimal literals with their character set named. That takes one round trip where
// placeholders may take two (prepare, execute), needs no quoting under any sql_mode, and keeps the payload's bytes
// whatever character set the connection has.
func (v values) appendTo(b *strings.Builder) {
	b.WriteString("(_ascii X'" + hex.EncodeToString([]byte(v.id)))
	b.WriteString("', _ascii X'" + hex.EncodeToString([]byte(v.eventType)))
	b.WriteString("', _utf8mb4 X'" + hex.EncodeToString(v.payload) + "', ")
	if v.headers == nil {
		b.WriteString("NULL, ")
	} else {
		b.WriteString("_utf8mb4 X'" + hex.EncodeToString(v.headers) + "', ")
	}
	if v.deliverAt.IsZero() {
		b.WriteString("NULL, ")
	} else {
		fmt.Fprintf(b, "FROM_UNIXTIME(%d.%06d), ", v.deliverAt.Unix(), v.deliverAt.Nanosecond()/1000)
	}
	b.WriteString(strconv.Itoa(v.priority) + ")")
}
