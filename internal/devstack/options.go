package devstack

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// Options say what to start and where to keep it.
type Options struct {
	// Dir keeps everything: data, mails, addresses, logs. One stack at a time may use it. Required.
	Dir string
	// DSN is a database of the user's own, which is then neither started nor stopped. Default: a private server.
	DSN string
	// Database is the private server's flavour. Default: the one that Dir was last used with, or else what PATH has, or
	// else MySQL.
	Database mysqlserver.Flavour
	// Templates is a folder of templates beside the built-in ones. Default: none.
	Templates string
	// MailFrom is the sender of all mails. Default: oncepost <oncepost@example.com>.
	MailFrom string
	// Rebind accepts this stack's Temporal namespace for a database that was used with another one.
	Rebind bool
	// Progress gets a line per part that starts or stops. Default: none.
	Progress io.Writer
	// Logger gets what the parts log. Default: it is dropped.
	Logger *slog.Logger
}

const (
	databaseName = "oncepost"
	// relayGrace and workerGrace bound a stop. No send takes longer than its 10 s: none is cut off.
	relayGrace  = 5 * time.Second
	workerGrace = 12 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("devstack: Options.Dir is required")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("devstack: %w", err)
	}
	o.Dir = dir
	if o.MailFrom == "" {
		o.MailFrom = "oncepost <oncepost@example.com>"
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.DSN != "" && o.Database != "" {
		return o, errors.New("a DSN names a database of your own: give it, or the flavour of a private one, not both")
	}
	return o, nil
}
