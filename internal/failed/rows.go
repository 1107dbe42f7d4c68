package failed

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/outbox"
)

// Rows are those of outbox_failed.
type Rows struct{ DB *sql.DB } // a pool of internal/mysqldb

// Row is one of them, whole.
type Row struct {
	Item
	Detail    string          `json:"detail"`
	Headers   json.RawMessage `json:"headers,omitempty"`
	Priority  int             `json:"priority"`
	Bytes     int             `json:"payload_bytes"`
	CreatedAt time.Time       `json:"created_at"`
	DeliverAt *time.Time      `json:"deliver_at,omitempty"`
	// Payload is as it is stored, and nil where it was not asked for.
	Payload *string `json:"payload,omitempty"`
}

func (r *Rows) list(ctx context.Context, f Filter) (all []Item, err error) {
	query, args := "SELECT failed_id, message_id, event_type, reason, CAST(failed_at AS CHAR) FROM outbox_failed", []any{}
	if f.EventType != "" {
		query, args = query+" WHERE event_type = ?", append(args, f.EventType)
	}
	query += " ORDER BY failed_id DESC"
	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, f.Limit)
	}
	rows, err := r.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read outbox_failed: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		i := Item{Kind: KindRow}
		var at string
		if err := rows.Scan(&i.FailedID, &i.MessageID, &i.EventType, &i.Reason, &at); err != nil {
			return nil, fmt.Errorf("read outbox_failed: %w", err)
		}
		if i.FailedAt, err = instant(at); err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, rows.Err()
}

// Show returns every row of a message ID, oldest first. Addresses in details and headers are masked; a payload is not.
func (r *Rows) Show(ctx context.Context, id string, payload bool) (all []Row, err error) {
	rows, err := r.DB.QueryContext(ctx, `SELECT failed_id, message_id, event_type, reason, detail, headers, priority, OCTET_LENGTH(payload),
 IF(?, payload, NULL), CAST(created_at AS CHAR), CAST(deliver_at AS CHAR), CAST(failed_at AS CHAR)
 FROM outbox_failed WHERE message_id = ? ORDER BY failed_id`, payload, id)
	if err != nil {
		return nil, fmt.Errorf("read outbox_failed: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read outbox_failed: %w", err)
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func scan(rows *sql.Rows) (r Row, err error) {
	var headers, payload, deliver sql.NullString
	var created, at string
	err = rows.Scan(&r.FailedID, &r.MessageID, &r.EventType, &r.Reason, &r.Detail, &headers, &r.Priority, &r.Bytes, &payload, &created, &deliver, &at)
	if err != nil {
		return r, err
	}
	r.Kind, r.Detail = KindRow, Mask(r.Detail)
	if masked := Mask(headers.String); headers.Valid {
		r.Headers = json.RawMessage(masked)
		if !json.Valid(r.Headers) { // what MariaDB's JSON_VALID lets pass, or the mask has spoilt
			if r.Headers, err = json.Marshal(masked); err != nil {
				return r, err
			}
		}
	}
	if payload.Valid {
		r.Payload = &payload.String
	}
	if deliver.Valid {
		t, err := instant(deliver.String)
		if err != nil {
			return r, err
		}
		r.DeliverAt = &t
	}
	if r.CreatedAt, err = instant(created); err != nil {
		return r, err
	}
	r.FailedAt, err = instant(at)
	return r, err
}

// instant reads a time as the pool's sessions, which are in UTC, show it.
func instant(s string) (time.Time, error) { return time.Parse("2006-01-02 15:04:05.999999", s) }

var (
	// ErrGone says that somebody else has retried or discarded the row.
	ErrGone = errors.New("the row is not in outbox_failed any more: somebody has retried or discarded it")
	// ErrWaits says that a row of that ID waits in outbox_messages.
	ErrWaits = errors.New("a row with this ID waits in outbox_messages already: let it start first")
	// ErrReused says that a retry is in vain.
	ErrReused = errors.New("its ID was used before for another message (id_reused): Temporal would refuse it again, for as long as it " +
		"keeps the other workflow; enqueue it anew with an ID of its own and discard this row, or retry with --force")
)

// Retry moves a row back to outbox_messages in one transaction, byte for byte and with its deliver_at. The row is a new one
// to the relay: created_at is now, so that no late delete of the old one can remove it.
func (r *Rows) Retry(ctx context.Context, failedID int64, force bool) (err error) {
	conn, err := r.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := outbox.Prepare(ctx, conn); err != nil {
		return err
	}
	return within(ctx, conn, func(tx *sql.Tx) error {
		var id, reason string
		err := tx.QueryRowContext(ctx, "SELECT message_id, reason FROM outbox_failed WHERE failed_id = ? FOR UPDATE", failedID).Scan(&id, &reason)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrGone
		}
		if err != nil {
			return fmt.Errorf("read outbox_failed: %w", err)
		}
		if reason == outbox.ReasonIDReused && !force {
			return ErrReused
		}
		if err := requeue(ctx, tx, id, failedID); err != nil {
			return err
		}
		return remove(ctx, tx, failedID)
	})
}

// requeue looks in both lanes: the primary key holds the shard, and so would let the ID into the other one.
func requeue(ctx context.Context, tx *sql.Tx, id string, failedID int64) error {
	var waiting int
	err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM outbox_messages
 WHERE shard IN (CRC32(?) MOD 16, CRC32(?) MOD 16 + 16) AND message_id = ?`, id, id, id).Scan(&waiting)
	if err != nil {
		return fmt.Errorf("read outbox_messages: %w", err)
	}
	if waiting > 0 {
		return ErrWaits
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO outbox_messages (message_id, event_type, payload, headers, deliver_at, priority)
 SELECT message_id, event_type, payload, headers, deliver_at, priority FROM outbox_failed WHERE failed_id = ?`, failedID)
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case duplicateEntry:
			return ErrWaits
		case lockWaitTimeout:
			return fmt.Errorf("somebody's open transaction holds this ID in outbox_messages, try again later: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("insert into outbox_messages: %w", err)
	}
	return nil
}

const (
	duplicateEntry  = 1062 // ER_DUP_ENTRY
	lockWaitTimeout = 1205 // ER_LOCK_WAIT_TIMEOUT
)

// Discard deletes a row for good.
func (r *Rows) Discard(ctx context.Context, failedID int64) error { return remove(ctx, r.DB, failedID) }

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func remove(ctx context.Context, db execer, failedID int64) error {
	result, err := db.ExecContext(ctx, "DELETE FROM outbox_failed WHERE failed_id = ?", failedID)
	if err != nil {
		return fmt.Errorf("delete from outbox_failed: %w", err)
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = ErrGone
	}
	return err
}

func within(ctx context.Context, conn *sql.Conn, work func(tx *sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	return tx.Commit()
}

// Choose picks the row of an ID that is meant: the only one, or the one with the failed ID where several are there.
func Choose(id string, rows []Row, failedID int64) (Row, error) {
	var numbers []string
	for _, r := range rows {
		if failedID == 0 && len(rows) == 1 || failedID == r.FailedID {
			return r, nil
		}
		numbers = append(numbers, fmt.Sprint(r.FailedID))
	}
	if failedID != 0 {
		return Row{}, fmt.Errorf("%s has no row %d in outbox_failed (it has: %s)", id, failedID, strings.Join(numbers, ", "))
	}
	return Row{}, fmt.Errorf("%s is in outbox_failed %d times: choose one with --failed-id (%s)", id, len(rows), strings.Join(numbers, ", "))
}
