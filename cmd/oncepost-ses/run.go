package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/alecthomas/kong"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// flags are the command line; each has an environment variable, which the flag overrides.
type flags struct {
	Listen        string  `help:"Address to listen on. There is no authentication: keep it on loopback." default:"127.0.0.1:4579" env:"ONCEPOST_SES_LISTEN"`
	Dir           string  `help:"Folder to keep the accepted mails in. Without it they are gone at the end." env:"ONCEPOST_SES_DIR" placeholder:"DIR"`
	WorkflowURL   string  `help:"Link from a mail to its workflow; {message_id} stands for the message ID." env:"ONCEPOST_SES_WORKFLOW_URL" placeholder:"URL"`
	Fault         string  `help:"Fail from the start, until cleared: ${presets}." env:"ONCEPOST_SES_FAULT" placeholder:"PRESET"`
	Max24HourSend float64 `name:"max-24-hour-send" help:"Daily quota in recipients; -1 is unlimited." default:"-1" env:"ONCEPOST_SES_MAX_24_HOUR_SEND"`
	MaxSendRate   float64 `help:"Sending rate in recipients per second." default:"14" env:"ONCEPOST_SES_MAX_SEND_RATE"`
	EnforceQuota  bool    `help:"Refuse what exceeds the quota or the rate, as SES does; otherwise they are only reported." env:"ONCEPOST_SES_ENFORCE_QUOTA"`
	LogLevel      string  `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"ONCEPOST_SES_LOG_LEVEL"`
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f, help, err := parse(args, stdout, stderr)
	if err != nil || help {
		return err
	}
	server, err := newServer(f, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("--listen (ONCEPOST_SES_LISTEN): %w", err)
	}
	if _, err := io.WriteString(stdout, banner(f, l.Addr())); err != nil {
		return errors.Join(fmt.Errorf("print the address: %w", err), l.Close())
	}
	return server.Serve(ctx, l)
}

// parse reads the flags. help says that they asked for help, which has been printed.
func parse(args []string, stdout, stderr io.Writer) (f flags, help bool, err error) {
	parser, err := kong.New(&f,
		kong.Name("oncepost-ses"),
		kong.Description("A stand-in for AWS SES with an inbox page. It keeps mails and sends none."),
		kong.Vars{"presets": presetNames()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { help = true }),
	)
	if err != nil {
		return f, false, fmt.Errorf("flags: %w", err)
	}
	if _, err := parser.Parse(args); err != nil && !help {
		return f, false, err
	}
	return f, help, nil
}

func newServer(f flags, stderr io.Writer) (*sesstandin.Server, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level (ONCEPOST_SES_LOG_LEVEL): %w", err)
	}
	server, err := sesstandin.New(sesstandin.Config{
		Dir:         f.Dir,
		WorkflowURL: f.WorkflowURL,
		Quota: sesstandin.Quota{
			Max24HourSend: f.Max24HourSend, MaxSendRate: f.MaxSendRate, Enforce: f.EnforceQuota,
		},
		Logger: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return nil, nameFlag(err)
	}
	if f.Fault == "" {
		return server, nil
	}
	fault, err := sesstandin.Preset(f.Fault)
	if err == nil {
		_, err = server.Inject(fault)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--fault (ONCEPOST_SES_FAULT): %w", err), server.Close())
	}
	return server, nil
}

// nameFlag says which flag and variable a refused setting came from.
func nameFlag(err error) error {
	var bad *sesstandin.ConfigError
	if !errors.As(err, &bad) {
		return err
	}
	name := map[string]string{
		"Dir":                 "--dir (ONCEPOST_SES_DIR)",
		"WorkflowURL":         "--workflow-url (ONCEPOST_SES_WORKFLOW_URL)",
		"Quota.Max24HourSend": "--max-24-hour-send (ONCEPOST_SES_MAX_24_HOUR_SEND)",
		"Quota.MaxSendRate":   "--max-send-rate (ONCEPOST_SES_MAX_SEND_RATE)",
	}[bad.Field]
	return fmt.Errorf("%s: %w", name, bad.Err)
}
