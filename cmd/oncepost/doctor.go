package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/doctor"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/sesraw"
)

type doctorCmd struct {
	config.MySQL    `embed:""`
	config.Temporal `embed:""`
	config.Mail     `embed:""`
	config.Alerts   `embed:""`

	Roles    []string `name:"role" env:"ONCEPOST_DOCTOR_ROLE" enum:"relay,worker,watch" placeholder:"ROLE" help:"What the database's account is for: relay, worker, watch, or several with commas between. It must have all their rights. Default: any one will do."`
	SendTest string   `name:"send-test" env:"ONCEPOST_DOCTOR_SEND_TEST" placeholder:"ADDRESS" help:"Send one test mail to this address after the checks, as all mails are sent, and say what SES answered."`
	JSON     bool     `name:"json" env:"ONCEPOST_DOCTOR_JSON" help:"Print JSON."`
}

// Help is what kong prints below the summary.
func (doctorCmd) Help() string {
	return `Give it the variables of the relay or the worker that it is to look after. It changes nothing: what it tries in the database it takes back. Each check has 10 seconds, and one that cannot be made is said and ends no other.

Exit codes: 0, all is well, or there are notes only; 3, there are warnings; 4, there are errors; 1, it was broken off or could not print; 2, the call was wrong. docs/doctor.md has a table of all checks.`
}

// The exit codes of what was found.
const (
	codeWarnings = 3
	codeErrors   = 4
)

func (c *doctorCmd) Run(a *app) error {
	if c.SendTest != "" {
		if _, err := sesraw.Address("", c.SendTest); err != nil {
			return config.UsageError{Err: fmt.Errorf("--send-test: %w", err)}
		}
	}
	found := doctor.Run(a.ctx, doctor.Config{
		OpenDB:     func() (*sql.DB, error) { return c.Open(a.logger) },
		Dial:       func() (client.Client, string, error) { return c.Dial(a.logger) },
		Mailer:     c.mailer,
		Mail:       c.Mail.Config(),
		Activities: func() (*activities.Activities, error) { return config.NewActivities(nil, c.Templates) },
		Alerts:     c.Alerts.Config(a.logger), Roles: c.Roles, SendTest: c.SendTest,
	})
	if err := a.ctx.Err(); err != nil {
		return fmt.Errorf("the checks were broken off: %w", err)
	}
	if err := c.print(a, found); err != nil {
		return err
	}
	switch doctor.Worst(found) {
	case doctor.Error:
		return config.ExitError{Code: codeErrors}
	case doctor.Warning:
		return config.ExitError{Code: codeWarnings}
	default:
		return nil
	}
}

// mailer is nil where no sender is set.
func (c *doctorCmd) mailer(ctx context.Context) (*ses.Mailer, error) {
	if c.From == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	return ses.New(ctx, c.Mail.Config())
}

func (c *doctorCmd) print(a *app, found []doctor.Finding) error {
	if !c.JSON {
		return doctor.Print(a.stdout, found)
	}
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"worst": doctor.Worst(found), "findings": found})
}
