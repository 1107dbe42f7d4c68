// Package migrate applies the numbered migrations of package schemas, and tells a process whether the tables are the ones
// it needs. Only `oncepost migrate` changes tables; relay and worker call [Check].
package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/schemas"
)

// VersionTable is where the applied migrations are recorded.
const VersionTable = "oncepost_migrations"

// Result is one migration that Up applied.
type Result struct {
	Version int64
	File    string
	Took    time.Duration
}

// Up applies what is missing, and returns what it applied. Processes that start at once wait for each other on a named
// lock. A run that was killed in the middle is finished by the next one. A table by one of our names that is somebody else's
// is left alone: *ForeignTableError.
func Up(ctx context.Context, db *sql.DB) (applied []Result, err error) {
	l, err := locks.New(db, locks.Config{})
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	began := false
	err = l.With(ctx, "migrate", -1, func(ctx context.Context) (err error) {
		began = true
		applied, err = apply(ctx, db)
		return err
	})
	if err != nil && !began {
		err = fmt.Errorf("migrate: wait for another process's migration: %w", err)
	}
	return applied, err
}

func apply(ctx context.Context, db *sql.DB) (applied []Result, err error) {
	if err := refuseForeign(ctx, db); err != nil {
		return nil, err
	}
	if err := restoreVersionZero(ctx, db); err != nil {
		return nil, err
	}
	provider, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	for _, r := range results {
		applied = append(applied, Result{Version: r.Source.Version, File: r.Source.Path, Took: r.Duration})
	}
	if err != nil {
		return applied, fmt.Errorf("migrate: %w", err)
	}
	return applied, nil
}

// restoreVersionZero writes goose's own first record where a run was killed between making the version table and writing
// it (MySQL's DDL commits by itself): goose refuses such a table for ever.
func restoreVersionZero(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "INSERT INTO "+VersionTable+" (version_id, is_applied)"+
		" SELECT 0, TRUE FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM "+VersionTable+" WHERE version_id = 0)")
	if err != nil && !isNoSuchTable(err) {
		return fmt.Errorf("migrate: complete the record of versions: %w", err)
	}
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	store, err := database.NewStore(database.DialectMySQL, VersionTable)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	p, err := goose.NewProvider("", db, schemas.MySQL(), goose.WithStore(store), goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return p, nil
}
