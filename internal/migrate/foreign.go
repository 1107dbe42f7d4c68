package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// ForeignTableError says that the database already has a table by one of oncepost's names which is not oncepost's.
type ForeignTableError struct {
	Database, Table string
	Columns         []string
}

func (e *ForeignTableError) Error() string {
	return fmt.Sprintf("database %[1]s already has a table %[2]s that is not oncepost's (its columns: %[3]s). "+
		"oncepost leaves it as it is. Either rename it (RENAME TABLE %[2]s TO old_%[2]s), or give oncepost "+
		"a database of its own on the same server: CREATE DATABASE oncepost, and end the DSN with /oncepost. "+
		"docs/moving.md shows both", e.Database, e.Table, strings.Join(e.Columns, ", "))
}

// ownTables are the tables as their migrations make them.
var ownTables = []struct {
	name    string
	since   int64 // the migration
	columns []string
}{
	{"outbox_messages", 1, []string{
		"message_id", "event_type", "payload", "headers", "deliver_at", "priority", "shard", "created_at",
	}},
	{"outbox_failed", 3, []string{
		"failed_id", "message_id", "event_type", "payload", "headers", "deliver_at", "priority", "created_at", "reason", "detail", "failed_at",
	}},
	{"outbox_binding", 4, []string{"id", "namespace", "namespace_id", "bound_at"}},
	{"sends", 5, []string{
		"message_id", "step", "recipient", "content", "generation", "state", "token", "expires_at", "result_id", "error_class", "created_at",
	}},
	{"sending_stops", 6, []string{
		"scope", "class", "cause", "stopped_by", "since", "lease_ends_at", "stops", "holder", "trial_ends_at",
	}},
	{"job_runs", 7, []string{"job", "period", "state", "token", "attempts", "host", "process", "started_at", "ended_at"}},
	{"processes", 8, []string{"process_id", "role", "host", "pid", "version", "started_at", "seen_at", "state"}},
	{"ops_conditions", 9, []string{"name", "subject", "detail", "since", "teller", "telling_ends_at", "told_at", "holds_until"}},
}

// refuseForeign looks at the tables that stand there before the migration which would make them. One with exactly our columns
// is what a killed run left behind.
func refuseForeign(ctx context.Context, db *sql.DB) error {
	version, err := current(ctx, db)
	if err != nil {
		return err
	}
	for _, own := range ownTables {
		if own.since <= version {
			continue
		}
		database, columns, err := columnsOf(ctx, db, own.name)
		if err != nil {
			return fmt.Errorf("look for a table %s: %w", own.name, err)
		}
		if len(columns) > 0 && !slices.Equal(columns, own.columns) {
			return &ForeignTableError{Database: database, Table: own.name, Columns: columns}
		}
	}
	return nil
}

// Explain says more of the error of an INSERT into outbox_messages, where the reason is that the table is not there yet or is
// somebody else's. Any other error comes back as it is.
func Explain(ctx context.Context, db *sql.DB, err error) error {
	const unknownColumn, noDefault = 1054, 1364 // ER_BAD_FIELD_ERROR, ER_NO_DEFAULT_FOR_FIELD: impossible on our table
	var my *mysql.MySQLError
	if !errors.As(err, &my) {
		return err
	}
	switch my.Number {
	case noSuchTable:
		return errors.Join(&VersionError{Need: Latest()}, err)
	case unknownColumn, noDefault:
		own := ownTables[0]
		database, columns, lookErr := columnsOf(ctx, db, own.name)
		if lookErr == nil && !slices.Equal(columns, own.columns) {
			return errors.Join(&ForeignTableError{Database: database, Table: own.name, Columns: columns}, err)
		}
	}
	return err
}

// columnsOf returns a table's columns in order; none where there is no such table.
func columnsOf(ctx context.Context, db *sql.DB, table string) (database string, columns []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT DATABASE(), COLUMN_NAME FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`, table)
	if err != nil {
		return "", nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var column string
		if err := rows.Scan(&database, &column); err != nil {
			return "", nil, err
		}
		columns = append(columns, column)
	}
	return database, columns, rows.Err()
}
