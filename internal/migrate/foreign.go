package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// ForeignTableError says that the database already has a table outbox_messages which is not oncepost's.
type ForeignTableError struct {
	Database string
	Columns  []string
}

func (e *ForeignTableError) Error() string {
	return fmt.Sprintf("database %s already has a table outbox_messages that is not oncepost's (its columns: %s). "+
		"oncepost leaves it as it is. Either rename it (RENAME TABLE outbox_messages TO old_outbox_messages), or give oncepost "+
		"a database of its own on the same server: CREATE DATABASE oncepost, and end the DSN with /oncepost. "+
		"docs/moving.md shows both", e.Database, strings.Join(e.Columns, ", "))
}

// ownColumns are those of migration 1, in order.
var ownColumns = []string{"message_id", "event_type", "payload", "headers", "deliver_at", "priority", "shard", "created_at"}

// refuseForeign looks at a table that stands there before the first migration. One with exactly our columns is what a killed
// first run left behind.
func refuseForeign(ctx context.Context, db *sql.DB) error {
	version, err := current(ctx, db)
	if err != nil || version > 0 {
		return err
	}
	rows, err := db.QueryContext(ctx, `SELECT DATABASE(), COLUMN_NAME FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_messages' ORDER BY ORDINAL_POSITION`)
	if err != nil {
		return fmt.Errorf("look for a table outbox_messages: %w", err)
	}
	defer rows.Close()
	var database string
	var columns []string
	for rows.Next() {
		var column string
		if err := rows.Scan(&database, &column); err != nil {
			return fmt.Errorf("look for a table outbox_messages: %w", err)
		}
		columns = append(columns, column)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look for a table outbox_messages: %w", err)
	}
	if len(columns) > 0 && !slices.Equal(columns, ownColumns) {
		return &ForeignTableError{Database: database, Columns: columns}
	}
	return nil
}
