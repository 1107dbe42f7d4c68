package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

type ledgerCmd struct {
	Binary string `default:"bin/oncepost"`
	Mails  int    `default:"500"`
	Tries  int    `default:"3"`
}

// Run measures mails per second from committed rows to accepted mails, in turn with the ledger and with one that always gives
// leave and remembers nothing.
func (c *ledgerCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		s, err := w.openShop(b, c.Binary, 0, 0)
		if err != nil {
			return err
		}
		return errors.Join(c.compare(s), s.stop())
	})
}

func (c *ledgerCmd) compare(s *shop) error {
	db, err := mysqldb.Open(mysqldb.Config{DSN: s.dsn})
	if err != nil {
		return err
	}
	defer db.Close()
	book, err := ledger.New(s.ctx, db)
	if err != nil {
		return err
	}
	var with, without float64
	for try := range c.Tries {
		for _, l := range []activities.Ledger{book, forgetful{}} {
			rate, err := s.drainMails(fmt.Sprintf("%d:%T", try, l), c.Mails, l)
			if err != nil {
				return err
			}
			if l == activities.Ledger(book) {
				with += rate / float64(c.Tries)
			} else {
				without += rate / float64(c.Tries)
			}
		}
	}
	s.printf("ledger: %.0f mails/s with the ledger, %.0f without; ratio %.2f; mean of %d, in turn", with, without, with/without, c.Tries)
	return nil
}

// drainMails lets n workflows wait, and then runs a worker until all their mails are accepted.
func (s *shop) drainMails(name string, n int, l activities.Ledger) (rate float64, err error) {
	if _, err := s.order("welcome:"+name, "welcome", n); err != nil {
		return 0, err
	}
	err = until(s.ctx, func() bool {
		time.Sleep(20 * time.Millisecond)
		left, err := outbox.Table{}.Pending(s.ctx, s.db, 1)
		return err == nil && left == 0
	})
	if err != nil {
		return 0, err
	}
	mailer, err := ses.New(s.ctx, ses.Config{From: "mail@example.com", Endpoint: s.sesURL})
	if err != nil {
		return 0, err
	}
	acts, err := config.NewActivities(mailer, "")
	if err != nil {
		return 0, err
	}
	acts.Ledger = l
	before, began := len(s.inbox.Mails()), time.Now()
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{Client: s.client, Activities: acts, Logger: slog.New(slog.DiscardHandler)}, workflows.Builtin())
	}()
	err = until(s.ctx, func() bool { time.Sleep(10 * time.Millisecond); return len(s.inbox.Mails()) >= before+n })
	rate = float64(n) / time.Since(began).Seconds()
	cancel()
	return rate, firstError(err, <-done)
}

// forgetful is a Ledger that always gives leave.
type forgetful struct{}

func (forgetful) Claim(context.Context, activities.Claim) (activities.Entry, error) {
	return activities.Entry{Standing: activities.StandingClaimed}, nil
}

func (forgetful) Record(context.Context, activities.Key, activities.Token, activities.Outcome) error {
	return nil
}
func (forgetful) Settle(context.Context, activities.Key) error         { return nil }
func (forgetful) Authorise(context.Context, activities.Key, int) error { return nil }
