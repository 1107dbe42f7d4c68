package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/stops"
	"github.com/oncepost/oncepost/worker"
)

type sendingCmd struct {
	Status sendingStatusCmd `cmd:"" help:"List the stops of sending, with cause and what ends them."`
	Stop   sendingStopCmd   `cmd:"" help:"Stop all sending, until oncepost sending resume. Workflows go on, and no mail is lost."`
	Resume sendingResumeCmd `cmd:"" help:"End every stop, whoever made it. Where its cause is still there, the next mail stops sending again."`
}

type sendingStatusCmd struct {
	config.MySQL `embed:""`

	JSON bool `name:"json" env:"ONCEPOST_SENDING_JSON" help:"Print JSON."`
}

func (c *sendingStatusCmd) Run(a *app) error {
	return a.with(c.MySQL, callTimeout, func(ctx context.Context, db *sql.DB) error {
		all, err := stops.New(db, stops.Config{}).Standing(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			e := json.NewEncoder(a.stdout)
			e.SetIndent("", "  ")
			return e.Encode(map[string]any{"stops": views(all)})
		}
		return printStops(a.stdout, all)
	})
}

// stopView is a stop in JSON.
type stopView struct {
	Scope string    `json:"scope"`
	Class string    `json:"class"`
	Cause string    `json:"cause"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
	Stops int       `json:"stops"`
	Next  string    `json:"next"`
}

func views(all []worker.Stop) []stopView {
	list := []stopView{} // [] in JSON, and not null
	for _, s := range all {
		list = append(list, stopView{s.Scope, s.Class, s.Text, s.By, s.Since, s.Stops, next(s)})
	}
	return list
}

// next says what ends the stop.
func next(s worker.Stop) string {
	switch {
	case s.By != "":
		return "ends by `oncepost sending resume`"
	case s.Trial:
		return "a worker tries with the next mail"
	case s.Left > 0:
		return "a trial in " + s.Left.Round(time.Second).String()
	}
	return "waits for a worker to try"
}

func printStops(w io.Writer, all []worker.Stop) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "sending is not stopped")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCOPE\tCLASS\tSINCE\tSTOPS\tBY\tNEXT\tCAUSE") // Flush returns the error
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", s.Scope, s.Class, s.Since.Format(time.RFC3339), s.Stops, s.By, next(s), s.Text)
	}
	return table.Flush()
}

type sendingStopCmd struct {
	config.MySQL `embed:""`

	By  string `name:"by" env:"ONCEPOST_SENDING_BY" required:"" placeholder:"NAME" help:"Who stops it."`
	Why string `name:"why" env:"ONCEPOST_SENDING_WHY" required:"" placeholder:"REASON" help:"For what reason; up to 1000 characters."`
}

func (c *sendingStopCmd) Run(a *app) error {
	if c.By == "" || c.Why == "" || utf8.RuneCountInString(c.By) > 200 || utf8.RuneCountInString(c.Why) > 1000 {
		return config.UsageError{Err: errors.New("--by takes 1 to 200 characters, and --why 1 to 1000")}
	}
	return a.with(c.MySQL, callTimeout, func(ctx context.Context, db *sql.DB) error {
		if err := stops.New(db, stops.Config{}).StopBy(ctx, c.By, c.Why); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.stdout, "sending is stopped: within seconds no worker sends, until `oncepost sending resume`")
		return err
	})
}

type sendingResumeCmd struct {
	config.MySQL `embed:""`
}

func (c *sendingResumeCmd) Run(a *app) error {
	return a.with(c.MySQL, callTimeout, func(ctx context.Context, db *sql.DB) error {
		cleared, err := stops.New(db, stops.Config{}).Clear(ctx)
		for _, s := range cleared {
			fmt.Fprintf(a.stdout, "ended the stop of %s (%s: %s)\n", s.Scope, s.Class, s.Text)
		}
		if err == nil && len(cleared) == 0 {
			fmt.Fprintln(a.stdout, "sending was not stopped")
		}
		return err
	})
}
