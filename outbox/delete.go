package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// MaxDelete is the most rows one Delete takes: more gain nothing, and hold their locks longer.
const MaxDelete = 1000

// keyTable turns one JSON parameter into rows. The ID's character set must be the column's own: otherwise the plan falls
// back to scanning whole shards (seen on both servers; a test asserts the plan).
const keyTable = `JSON_TABLE(?, '$[*]' COLUMNS (
 shard TINYINT UNSIGNED PATH '$[0]',
 message_id VARCHAR(160) CHARACTER SET ascii COLLATE ascii_bin PATH '$[1]',
 created_at DATETIME(6) PATH '$[2]')) AS k
 STRAIGHT_JOIN %s AS o FORCE INDEX (PRIMARY) ON o.shard = k.shard AND o.message_id = k.message_id
 WHERE o.created_at = k.created_at AND o.message_id < '~'`

// dropFree deletes the rows of a keyTable that nobody else has locked, and nothing on a read-only server. The inner SELECT
// locks what is free and skips the rest; its LIMIT keeps the optimizer from merging it into the DELETE, which would wait.
// One statement instead of a transaction of two: half the key look-ups and a third of the round trips.
const dropFree = `DELETE o FROM (SELECT o.shard, o.message_id FROM %[1]s AND NOT %[2]s LIMIT %[3]d %[4]s) AS free
 STRAIGHT_JOIN %[5]s AS o FORCE INDEX (PRIMARY) ON o.shard = free.shard AND o.message_id = free.message_id`

// Deleter deletes rows on one session. It is not safe for concurrent use.
type Deleter struct {
	table Table
	conn  *sql.Conn
	kind  Kind
	drop  *sql.Stmt // made when first used; it ends with the session
}

// NewDeleter returns a deleter on conn, a session prepared by Prepare.
func (t Table) NewDeleter(conn *sql.Conn, kind Kind) *Deleter {
	return &Deleter{table: t, conn: conn, kind: kind}
}

// Deleted tells what a Delete left, where it did not delete all. The zero value means that every row was there and is gone.
type Deleted struct {
	// Server is who answered.
	Server ServerState
	// Locked are the keys whose rows are still there, held by somebody's open transaction. All others are gone.
	Locked []Key
}

// Delete deletes the rows of keys, at most MaxDelete, and never waits for a lock: rows that a producer holds (it enqueued
// the same ID again and has not committed) are reported and left. On a read-only server it deletes nothing.
func (d *Deleter) Delete(ctx context.Context, keys []Key) (left Deleted, err error) {
	n, derr := d.deleteFree(ctx, keys)
	if derr == nil && n == len(keys) {
		return Deleted{}, nil
	}
	left.Server, err = d.kind.State(ctx, d.conn)
	switch {
	case err != nil:
		return left, errors.Join(derr, err)
	case left.Server.ReadOnly: // which is why
		return left, nil
	case derr != nil:
		return left, derr
	}
	// What was not deleted is locked or gone: a plain read tells.
	left.Locked, err = d.find(ctx, d.conn, keys, "")
	return left, err
}

// deleteFree deletes the rows that nobody else has locked, and counts them.
func (d *Deleter) deleteFree(ctx context.Context, keys []Key) (int, error) {
	if d.drop == nil {
		drop, err := d.conn.PrepareContext(ctx, d.dropSQL())
		if err != nil {
			return 0, fmt.Errorf("prepare the delete: %w", err)
		}
		d.drop = drop
	}
	result, err := d.drop.ExecContext(ctx, keysJSON(keys))
	if err != nil {
		return 0, fmt.Errorf("delete: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (d *Deleter) dropSQL() string {
	table := d.table.name("outbox_messages")
	_, readOnly := d.kind.StateExprs()
	return fmt.Sprintf(dropFree, fmt.Sprintf(keyTable, table), readOnly, MaxDelete, d.lockClause(), table)
}

// lockClause takes only rows nobody else has locked. MariaDB has no OF; the table beside o holds no rows to lock.
func (d *Deleter) lockClause() string {
	if d.kind == MariaDB {
		return "FOR UPDATE SKIP LOCKED"
	}
	return "FOR UPDATE OF o SKIP LOCKED"
}

type rowsQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// find returns those of keys whose rows are there and, with a lock clause, could be locked.
func (d *Deleter) find(ctx context.Context, q rowsQueryer, keys []Key, lock string) ([]Key, error) {
	query := fmt.Sprintf("SELECT o.shard, o.message_id, CAST(o.created_at AS CHAR) FROM "+keyTable, d.table.name("outbox_messages"))
	rows, err := q.QueryContext(ctx, query+" "+lock, keysJSON(keys))
	if err != nil {
		return nil, fmt.Errorf("find rows: %w", err)
	}
	defer rows.Close()
	found := make([]Key, 0, len(keys))
	for rows.Next() {
		var k Key
		if err := rows.Scan(&k.Shard, &k.MessageID, &k.CreatedAt); err != nil {
			return nil, fmt.Errorf("find rows: %w", err)
		}
		found = append(found, k)
	}
	return found, rows.Err()
}

// keysJSON is the parameter of keyTable. Message IDs are printable ASCII: only '"' and '\\' need escaping.
func keysJSON(keys []Key) []byte {
	b := make([]byte, 0, 80*len(keys))
	for i, k := range keys {
		b = append(b, "[,"[min(i, 1)], '[')
		b = strconv.AppendUint(b, uint64(k.Shard), 10)
		b = append(b, ',', '"')
		for j := range len(k.MessageID) {
			if c := k.MessageID[j]; c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, k.MessageID[j])
		}
		b = append(b, `","`...)
		b = append(b, k.CreatedAt...)
		b = append(b, '"', ']')
	}
	return append(b, ']')
}

// rollback ends a transaction that was not committed, and adds its own error to err. After a commit it does nothing.
func rollback(tx *sql.Tx, err error) error {
	if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
		return errors.Join(err, rerr)
	}
	return err
}
