package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Why a message is in outbox_failed.
const (
	ReasonNeverStarts = "never_starts" // Temporal refuses this message, and always will
	ReasonIDReused    = "id_reused"    // its ID was used before for a message with another type or payload
)

const maxDetail = 1024 // characters of outbox_failed.detail

// MoveToFailed moves a row to outbox_failed in one transaction. moved is false where the row is gone, or held by
// somebody's open transaction; nothing is changed then.
func (d *Deleter) MoveToFailed(ctx context.Context, key Key, reason, detail string) (moved bool, err error) {
	tx, err := d.conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { err = rollback(tx, err) }()
	taken, err := d.find(ctx, tx, []Key{key}, d.lockClause())
	if err != nil || len(taken) == 0 {
		return false, err
	}
	if err := d.copyToFailed(ctx, tx, key, reason, detail); err != nil {
		return false, err
	}
	n, err := d.deleteFree(ctx, taken) // on tx's session
	if err == nil && n != len(taken) {
		err = fmt.Errorf("delete: %d rows of %d: has the server become read-only?", n, len(taken))
	}
	if err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// There reports whether a row is in the table, locked or not.
func (d *Deleter) There(ctx context.Context, key Key) (bool, error) {
	found, err := d.find(ctx, d.conn, []Key{key}, "")
	return len(found) > 0, err
}

// State asks who answers on the deleter's session.
func (d *Deleter) State(ctx context.Context) (ServerState, error) { return d.kind.State(ctx, d.conn) }

func (d *Deleter) copyToFailed(ctx context.Context, tx *sql.Tx, key Key, reason, detail string) error {
	// Errors quote what others sent, which need not be UTF-8; a message whose reason the column refuses would stay for ever.
	detail = strings.ToValidUTF8(detail, "\ufffd")
	if r := []rune(detail); len(r) > maxDetail {
		detail = string(r[:maxDetail])
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %s
 (message_id, event_type, payload, headers, deliver_at, priority, created_at, reason, detail)
 SELECT message_id, event_type, payload, headers, deliver_at, priority, created_at, ?, ?
 FROM %s WHERE shard = ? AND message_id = ?`, d.table.name("outbox_failed"), d.table.name("outbox_messages")),
		reason, detail, key.Shard, key.MessageID)
	if err != nil {
		return fmt.Errorf("insert into outbox_failed: %w", err)
	}
	return nil
}
