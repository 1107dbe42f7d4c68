// Command oncepost-dev runs the whole system on one machine, with everything in one folder: a private database, Temporal
// with its web UI, a stand-in for AWS SES with an inbox page, relay and worker. It is for development and demonstration;
// production runs command oncepost.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/oncepost/oncepost/internal/config"
)

type cli struct {
	Up   upCmd   `cmd:"" help:"Start the stack and keep it running until Ctrl-C."`
	Demo demoCmd `cmd:"" help:"Start the stack, run a small business on it, and show what became of each row."`
}

// app is what every command gets.
type app struct {
	ctx            context.Context //nolint:containedctx // one per run of the program, handed to the command by kong
	stdout, stderr io.Writer
}

const description = `The whole of oncepost on one machine, for development: a private MySQL or MariaDB, Temporal with its web UI, a stand-in for AWS SES with an inbox page, relay and worker. Everything is kept in one folder; nothing is installed and no mail leaves.`

func main() {
	// A closed terminal (SIGHUP) is a stop too: the parts must not stay behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "oncepost-dev: "+err.Error())
		os.Exit(config.ExitCode(err))
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c cli
	kctx, err := config.Parse(&c, "oncepost-dev", description, args, stdout, stderr)
	if err != nil || kctx == nil {
		return err
	}
	return kctx.Run(&app{ctx: ctx, stdout: stdout, stderr: stderr})
}
