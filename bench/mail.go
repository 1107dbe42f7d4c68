package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oncepost/oncepost/internal/devstack"
	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/outbox"
)

type mailCmd struct {
	Mails  int `default:"500"`
	Warmup int `default:"50"`
}

// Run commits a message, waits for its mail at the stand-in, commits the next: relay and worker in one process, everything
// on this machine. The stack is the development stack, started twice: the second start is the warm one.
func (c *mailCmd) Run(b *bench) error {
	for _, name := range b.databases {
		flavour, err := mysqlserver.ParseFlavour(name)
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "oncepost-bench-mail-")
		if err != nil {
			return err
		}
		err = c.measure(b.ctx, name, flavour, filepath.Join(dir, "stack"))
		if err := firstError(err, os.RemoveAll(dir)); err != nil {
			return err
		}
	}
	return nil
}

func (c *mailCmd) measure(ctx context.Context, name string, flavour mysqlserver.Flavour, dir string) error {
	options := devstack.Options{Dir: dir, Database: flavour}
	var ready time.Duration
	for i := range 2 {
		began := time.Now()
		stack, err := devstack.Start(ctx, options)
		if err != nil {
			return err
		}
		ready = time.Since(began)
		if i == 1 {
			err = c.oneByOne(ctx, name, stack, ready)
		}
		if err := firstError(err, stack.Stop()); err != nil {
			return err
		}
	}
	return nil
}

func (c *mailCmd) oneByOne(ctx context.Context, name string, stack *devstack.Stack, ready time.Duration) error {
	var all []time.Duration
	for i := range c.Warmup + c.Mails {
		id, err := outbox.Enqueue(ctx, stack.DB(), outbox.Message{EventType: "welcome", Payload: map[string]string{
			"company_id": "c_1", "company_name": "Example", "email": "admin@example.com",
		}})
		if err != nil {
			return err
		}
		began := time.Now()
		mails, err := stack.Inbox().Wait(ctx, func(ms []sesstandin.Mail) bool { return has(ms, id) })
		if err != nil {
			return err
		}
		if i >= c.Warmup {
			at := mails[slices.IndexFunc(mails, func(m sesstandin.Mail) bool { return m.MessageID == id })].ReceivedAt
			all = append(all, at.Sub(began))
		}
	}
	slices.Sort(all)
	fmt.Printf("%-8s mail: commit to accepted, one at a time, %d mails: p50 %.1f ms, p99 %.1f ms; stack ready in %.1f s warm\n",
		name, len(all), ms(all[len(all)/2]), ms(all[len(all)*99/100]), ready.Seconds())
	return nil
}

func has(mails []sesstandin.Mail, id string) bool {
	return slices.ContainsFunc(mails, func(m sesstandin.Mail) bool { return m.MessageID == id })
}
