package explain

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/internal/stops"
)

// readRow reads the message's row. It may be in either lane.
func readRow(ctx context.Context, db *sql.DB, id string) (*Row, error) {
	var (
		r       Row
		created string
		deliver sql.NullString
	)
	err := db.QueryRowContext(ctx, `SELECT event_type, priority, shard, OCTET_LENGTH(payload), CAST(created_at AS CHAR), CAST(deliver_at AS CHAR)
 FROM outbox_messages WHERE shard IN (CRC32(?) MOD 16, CRC32(?) MOD 16 + 16) AND message_id = ?`, id, id, id).
		Scan(&r.EventType, &r.Priority, &r.Shard, &r.Bytes, &created, &deliver)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no row is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read outbox_messages: %w", err)
	}
	if r.CreatedAt, err = instant(created); err != nil {
		return nil, err
	}
	if deliver.Valid {
		at, err := instant(deliver.String)
		if err != nil {
			return nil, err
		}
		r.DeliverAt = &at
	}
	return &r, nil
}

// instant reads a time as the pool's sessions, which are in UTC, show it.
func instant(s string) (time.Time, error) { return time.Parse("2006-01-02 15:04:05.999999", s) }

func readFailed(ctx context.Context, db *sql.DB, id string) (all []Failed, err error) {
	rows, err := db.QueryContext(ctx, `SELECT event_type, reason, detail, CAST(failed_at AS CHAR) FROM outbox_failed
 WHERE message_id = ? ORDER BY failed_id`, id)
	if err != nil {
		return nil, fmt.Errorf("read outbox_failed: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var f Failed
		var at string
		if err := rows.Scan(&f.EventType, &f.Reason, &f.Detail, &at); err != nil {
			return nil, fmt.Errorf("read outbox_failed: %w", err)
		}
		if f.FailedAt, err = instant(at); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, rows.Err()
}

func readLedger(ctx context.Context, db *sql.DB, id string) (all []Entry, err error) {
	rows, err := db.QueryContext(ctx, `SELECT step, LEFT(recipient, 4), generation, state, result_id, error_class, CAST(created_at AS CHAR)
 FROM sends WHERE message_id = ? ORDER BY created_at, step, recipient`, []byte(id))
	if err != nil {
		return nil, fmt.Errorf("read sends: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var recipient []byte
		var at string
		if err := rows.Scan(&e.Step, &recipient, &e.Generation, &e.State, &e.ResultID, &e.ErrorClass, &at); err != nil {
			return nil, fmt.Errorf("read sends: %w", err)
		}
		e.Recipient = hex.EncodeToString(recipient)
		if e.CreatedAt, err = instant(at); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

func readStops(ctx context.Context, db *sql.DB) (all []Stop, err error) {
	standing, err := stops.New(db, stops.Config{}).Standing(ctx)
	for _, s := range standing {
		all = append(all, Stop{Scope: s.Scope, Class: s.Class, Text: s.Text, By: s.By, Since: s.Since})
	}
	return all, err
}
