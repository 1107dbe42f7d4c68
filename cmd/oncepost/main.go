// Command oncepost is the production binary: it migrates the tables, and runs the relay and the worker.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/oncepost/oncepost/internal/config"
)

type cli struct {
	config.Log

	Migrate    migrateCmd    `cmd:"" help:"Create or update oncepost's tables."`
	Relay      relayCmd      `cmd:"" help:"Start a workflow for each committed row of outbox_messages."`
	Worker     workerCmd     `cmd:"" help:"Run the workflows and send the mails."`
	Watch      watchCmd      `cmd:"" help:"Watch relays, workers, Temporal and the database, and tell people when one is away."`
	Status     statusCmd     `cmd:"" help:"Show how the whole pipeline is. Exits 3 where something is wrong."`
	Doctor     doctorCmd     `cmd:"" help:"Look for trouble before it comes: in the database, Temporal, SES and the settings. Exits 3 with warnings, 4 with errors."`
	Enqueue    enqueueCmd    `cmd:"" help:"Write one message into outbox_messages."`
	Explain    explainCmd    `cmd:"" help:"Show the whole way of one message: row, workflow, attempts, ledger."`
	Resolve    resolveCmd    `cmd:"" help:"Say what became of a parked mail, of which nobody knows whether it was sent."`
	State      stateCmd      `cmd:"" help:"Show what a message waits for."`
	SendNow    sendNowCmd    `cmd:"" name:"send-now" help:"End what a message waits for, and send it now."`
	CancelSend cancelSendCmd `cmd:"" name:"cancel-send" help:"Take back what no worker has begun to send."`
	Failed     failedCmd     `cmd:"" help:"List, show, retry or discard what has failed."`
	Alert      alertCmd      `cmd:"" help:"Tell people of something at once, past the database and Temporal."`
	Sending    sendingCmd    `cmd:"" help:"Show, make or end a stop of sending."`
	Job        jobCmd        `cmd:"" help:"Run a job on one of many machines, and once a day."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// app is what every command gets.
type app struct {
	ctx            context.Context //nolint:containedctx // one per run of the program, handed to the command by kong
	logger         *slog.Logger
	stdin          io.Reader
	stdout, stderr io.Writer
}

// with opens the database for work, which may take so long.
func (a *app) with(m config.MySQL, timeout time.Duration, work func(ctx context.Context, db *sql.DB) error) (err error) {
	db, err := m.Open(a.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := withTimeout(a, timeout)
	defer cancel()
	return work(ctx, db)
}

const description = `oncepost turns each committed row of the MySQL table outbox_messages into exactly one Temporal workflow, which sends a mail through AWS SES.

Temporal is reached as TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_* or a profile (TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE) say; AWS as AWS_REGION, AWS_PROFILE and its other variables say. With OTEL_EXPORTER_OTLP_ENDPOINT relay and worker export OpenTelemetry traces.`

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup(1) has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "oncepost: "+text)
		}
		os.Exit(config.ExitCode(err))
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var c cli
	kctx, err := config.Parse(&c, "oncepost", description, args, stdout, stderr)
	if err != nil || kctx == nil {
		return err
	}
	return kctx.Run(&app{ctx: ctx, logger: c.New(stderr), stdin: stdin, stdout: stdout, stderr: stderr})
}
