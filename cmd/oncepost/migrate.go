package main

import (
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

type migrateUpCmd struct {
	config.MySQL `embed:""`

	Print bool          `name:"print" env:"ONCEPOST_MIGRATE_PRINT" help:"Print the SQL for a migration tool of your own, and touch no database."`
	Wait  time.Duration `name:"wait" env:"ONCEPOST_MIGRATE_WAIT" default:"5m" help:"How long all of it may take, waiting for another process's migration included."`
}

func (c *migrateUpCmd) Run(a *app) (err error) {
	if c.Print {
		return migrate.Print(a.stdout)
	}
	if c.Wait <= 0 {
		return usageError{errors.New("--wait must be positive: nothing can be done in no time")}
	}
	db, err := c.Open(a.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := withTimeout(a, c.Wait)
	defer cancel()
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

func (c *migrateStatusCmd) Run(a *app) (err error) {
	db, err := c.Open(a.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := withTimeout(a, callTimeout)
	defer cancel()
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
