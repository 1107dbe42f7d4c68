// Command run runs the nightly job once under a lock, as cron would, or as a worker of a Temporal Schedule.
//
//	ONCEPOST_MYSQL_DSN='user:password@tcp(127.0.0.1:3306)/app' go run ./examples/nightly/run lock
//	ONCEPOST_MYSQL_DSN='user:password@tcp(127.0.0.1:3306)/app' go run ./examples/nightly/run schedule
//
// The tables are made where they are not there: those of the job, and job_runs.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/oncepost/oncepost/examples/nightly"
	"github.com/oncepost/oncepost/locks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		slog.Error("the nightly job", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	dsn := os.Getenv("ONCEPOST_MYSQL_DSN")
	if dsn == "" {
		return errors.New("set ONCEPOST_MYSQL_DSN, such as user:password@tcp(127.0.0.1:3306)/app")
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, table := range append(nightly.Tables, locks.JobRunsSQL) {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	job := nightly.Job{DB: db}
	switch {
	case len(args) == 1 && args[0] == "lock":
		return byLock(ctx, job)
	case len(args) == 1 && args[0] == "schedule":
		return bySchedule(ctx, job)
	}
	return errors.New("want one argument: lock or schedule")
}

func byLock(ctx context.Context, job nightly.Job) error {
	zone, err := time.LoadLocation(nightly.Zone)
	if err != nil {
		return err
	}
	l, err := locks.New(job.DB, locks.Config{})
	if err != nil {
		return err
	}
	return job.ByLock(ctx, l, locks.Day(time.Now().In(zone)), slog.Default())
}

func bySchedule(ctx context.Context, job nightly.Job) error {
	c, err := client.DialContext(ctx, envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := nightly.Schedule(ctx, c); err != nil {
		return err
	}
	interrupted := make(chan any)
	go func() { <-ctx.Done(); close(interrupted) }()
	return job.Worker(c).Run(interrupted)
}
