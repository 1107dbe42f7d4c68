package main

import (
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/monitor"
)

type statusCmd struct {
	Binary string `default:"bin/oncepost"`
	Rows   int    `default:"2000000"`
	Looks  int    `default:"21"`
}

// Run measures one look at a backlog, in this process and by the command.
func (c *statusCmd) Run(b *bench) error {
	temporal, err := startTemporal(b, "")
	if err != nil {
		return err
	}
	defer temporal.Stop()
	flows, err := client.Dial(client.Options{HostPort: temporal.FrontendAddr(), Logger: silent{}})
	if err != nil {
		return err
	}
	defer flows.Close()
	return b.each(func(w *world) error {
		if err := w.fill(c.Rows, 500, 3); err != nil {
			return err
		}
		var looks, commands []time.Duration
		var found string
		for range c.Looks {
			began := time.Now()
			s, err := monitor.Look(b.ctx, monitor.Config{DB: w.db, Client: flows, Namespace: "default", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			looks, found = append(looks, time.Since(began)), s.Outbox.Pending.String()
			began = time.Now()
			cmd := w.process(c.Binary, temporal.FrontendAddr(), "status")
			var exit *exec.ExitError
			if err := cmd.Run(); err != nil && !errors.As(err, &exit) { // there is no relay: it says so
				return err
			}
			commands = append(commands, time.Since(began))
		}
		slices.Sort(looks)
		slices.Sort(commands)
		w.printf("status: %d rows, shown as %s: a look %d ms in the middle, %d ms at most; the command %d ms and %d ms", c.Rows, found,
			looks[len(looks)/2].Milliseconds(), looks[len(looks)-1].Milliseconds(), commands[len(commands)/2].Milliseconds(), commands[len(commands)-1].Milliseconds())
		return nil
	})
}
