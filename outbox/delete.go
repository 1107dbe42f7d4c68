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

// Deleter deletes rows on one session. It is not safe for concurrent use.
type Deleter struct {
	table      Table
	conn       *sql.Conn
	kind       Kind
	lock, drop *sql.Stmt // made when first used; they end with the session
}

// NewDeleter returns a deleter on conn, a session prepared by Prepare.
func (t Table) NewDeleter(conn *sql.Conn, kind Kind) *Deleter {
	return &Deleter{table: t, conn: conn, kind: kind}
}

// Deleted tells what a Delete found.
type Deleted struct {
	Server ServerState
	// Locked are the keys whose rows are still there, held by somebody's open transaction. All others are gone.
	Locked []Key
}

// Delete deletes the rows of keys, at most MaxDelete, and never waits for a lock: rows are taken with SKIP LOCKED, and
// those that a producer holds (it enqueued the same ID again and has not committed) are reported and left.
// On a read-only server it deletes nothing.
func (d *Deleter) Delete(ctx context.Context, keys []Key) (Deleted, error) {
	result, taken, err := d.deleteFree(ctx, keys)
	if err != nil || result.Server.ReadOnly || taken == len(keys) {
		return result, err
	}
	// What was not taken is locked or gone: a plain read tells.
	result.Locked, err = d.find(ctx, d.conn, keys, "")
	return result, err
}

// deleteFree deletes the rows that nobody else has locked. Its statements run on the session, and so within tx.
func (d *Deleter) deleteFree(ctx context.Context, keys []Key) (result Deleted, taken int, err error) {
	if err := d.prepare(ctx); err != nil {
		return result, 0, err
	}
	tx, err := d.conn.BeginTx(ctx, nil)
	if err != nil {
		return result, 0, err
	}
	defer func() { err = rollback(tx, err) }()
	all := keysJSON(keys)
	if err = d.lock.QueryRowContext(ctx, all).Scan(&result.Server.ID, &result.Server.ReadOnly, &taken); err != nil {
		return result, 0, fmt.Errorf("lock rows: %w", err)
	}
	if result.Server.ReadOnly || taken == 0 {
		return result, 0, nil
	}
	if taken < len(keys) { // rare: which ones?
		free, err := d.find(ctx, tx, keys, d.lockClause())
		if err != nil || len(free) == 0 {
			return result, 0, err
		}
		all, taken = keysJSON(free), len(free)
	}
	if _, err := d.drop.ExecContext(ctx, all); err != nil {
		return result, 0, fmt.Errorf("delete: %w", err)
	}
	return result, taken, tx.Commit()
}

// prepare makes the two statements of every delete: one that locks rows, counts them and tells who answered, and one that
// deletes rows which the session has locked.
func (d *Deleter) prepare(ctx context.Context) (err error) {
	if d.drop != nil {
		return nil
	}
	id, readOnly := d.kind.StateExprs()
	from := fmt.Sprintf(keyTable, d.table.name("outbox_messages"))
	lock := "SELECT " + id + ", " + readOnly + ", COUNT(o.message_id) FROM " + from + d.lockClause() //nolint:gosec // a quoted table name; keys are a parameter
	if d.lock, err = d.conn.PrepareContext(ctx, lock); err != nil {
		return fmt.Errorf("prepare the lock of rows: %w", err)
	}
	if d.drop, err = d.conn.PrepareContext(ctx, "DELETE o FROM "+from); err != nil { //nolint:gosec // the same
		return fmt.Errorf("prepare the delete: %w", err)
	}
	return nil
}

// lockClause takes only rows nobody else has locked. MariaDB has no OF; the table beside o holds no rows to lock.
func (d *Deleter) lockClause() string {
	if d.kind == MariaDB {
		return " FOR UPDATE SKIP LOCKED"
	}
	return " FOR UPDATE OF o SKIP LOCKED"
}

type rowsQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// find returns those of keys whose rows are there and, with a lock clause, could be locked.
func (d *Deleter) find(ctx context.Context, q rowsQueryer, keys []Key, lock string) ([]Key, error) {
	query := fmt.Sprintf("SELECT o.shard, o.message_id, CAST(o.created_at AS CHAR) FROM "+keyTable, d.table.name("outbox_messages")) + lock
	rows, err := q.QueryContext(ctx, query, keysJSON(keys))
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
