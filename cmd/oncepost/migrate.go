package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/migrate"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"withargs" help:"Apply what is missing (the default). Any number of processes may do it at once."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations, and whether each has been applied. Exits 1 where one has not."`
}

// Help is what kong prints below the summary: it lists no flags of a default command.
func (migrateCmd) Help() string {
	return "To apply the SQL with a migration tool of your own, `oncepost migrate --print` prints it and touches no database. " +
		"`oncepost migrate up --help` lists all flags."
}

type migrateUpCmd struct {
	config.MySQL `embed:""`

	Print bool          `name:"print" env:"ONCEPOST_MIGRATE_PRINT" help:"Print the SQL for a migration tool of your own, and touch no database."`
	Wait  time.Duration `name:"wait" env:"ONCEPOST_MIGRATE_WAIT" default:"5m" help:"How long all of it may take, waiting for another process's migration included."`
}

func (c *migrateUpCmd) Run(a *app) error {
	if c.Print {
		return migrate.Print(a.stdout)
	}
	if c.Wait <= 0 {
		return config.UsageError{Err: errors.New("--wait must be positive: nothing can be done in no time")}
	}
	return a.with(c.MySQL, c.Wait, func(ctx context.Context, db *sql.DB) error { return c.up(ctx, a, db) })
}

func (c *migrateUpCmd) up(ctx context.Context, a *app, db *sql.DB) error {
	applied, err := migrate.Up(ctx, db)
	for _, m := range applied {
		fmt.Fprintf(a.stdout, "applied %s (%s)\n", m.File, m.Took.Round(time.Millisecond))
	}
	if err == nil {
		fmt.Fprintf(a.stdout, "the tables are at version %d\n", migrate.Latest())
	}
	return err
}

type migrateStatusCmd struct {
	config.MySQL `embed:""`
}

func (c *migrateStatusCmd) Run(a *app) error {
	return a.with(c.MySQL, callTimeout, func(ctx context.Context, db *sql.DB) error { return c.list(ctx, a, db) })
}

func (c *migrateStatusCmd) list(ctx context.Context, a *app, db *sql.DB) error {
	list, err := migrate.List(ctx, db)
	if err != nil {
		return err
	}
	pending := 0
	for _, m := range list {
		state := "applied"
		if !m.Applied {
			state = "pending"
			pending++
		}
		fmt.Fprintf(a.stdout, "%s  %s\n", state, m.File)
	}
	if pending > 0 {
		return fmt.Errorf("%d migrations are pending: run `oncepost migrate`", pending)
	}
	return nil
}
