// Command oncepost-dev runs the whole system on one machine, with everything in one folder: a private database, Temporal
// with its web UI, a stand-in for AWS SES with an inbox page, relay and worker. It is for development and demonstration;
// production runs command oncepost.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
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
		os.Exit(exitCode(err))
	}
}

// usageError is an error in how the program was called.
type usageError struct{ error }

func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c cli
	exited := false
	parser, err := kong.New(&c, kong.Name("oncepost-dev"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return err
	}
	kctx, err := parser.Parse(args)
	if exited { // --help has printed its text
		return nil
	}
	if err != nil {
		return usageError{err}
	}
	return kctx.Run(&app{ctx: ctx, stdout: stdout, stderr: stderr})
}
