package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/oncepost/oncepost/internal/devstack"
	"github.com/oncepost/oncepost/internal/devstack/demo"
)

type demoCmd struct {
	stackFlags `embed:""`

	Once bool `name:"once" env:"ONCEPOST_DEV_DEMO_ONCE" help:"End after the demonstration: with 0 when every row came out as it should, else with 1."`
}

var errWrong = errors.New("not every row came out as it should: see the table above")

func (c *demoCmd) Run(a *app) error {
	return c.with(a, func(ctx context.Context, s *devstack.Stack) error {
		result, err := demo.Run(ctx, demo.Deps{DB: s.DB(), Temporal: s.Temporal(), Inbox: s.Inbox()}, a.stdout)
		if a.ctx.Err() != nil { // Ctrl-C in the middle of it
			return nil
		}
		if err != nil {
			return err
		}
		if !result.OK() {
			err = errWrong
		}
		addresses, atErr := s.Addresses()
		if atErr != nil {
			return errors.Join(err, atErr)
		}
		if c.Once {
			return err
		}
		fmt.Fprint(a.stdout, table(addresses, c.Dir), look(addresses, result.Example), usage(addresses))
		stay(ctx, a)
		return err
	})
}

// look says where to see more.
func look(at devstack.Addresses, example string) string {
	return fmt.Sprintf(`
Look at one message from both ends:

  its workflow   %s/%s
  its mails      %s?q=%s
`, at.WebUI, url.PathEscape(example), at.Inbox, url.QueryEscape(example))
}
