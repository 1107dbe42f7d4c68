package devstack

import (
	"context"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

// startWorker returns when the worker polls.
func (s *Stack) startWorker(ctx context.Context) (string, error) {
	mailer, err := ses.New(ctx, ses.Config{From: s.opts.MailFrom, Endpoint: s.inboxURL})
	if err != nil {
		return "", err
	}
	acts, err := config.NewActivities(mailer, s.opts.Templates)
	if err != nil {
		return "", err
	}
	if acts.Ledger, err = ledger.New(ctx, s.db); err != nil {
		return "", err
	}
	started := make(chan struct{})
	cfg := worker.Config{
		Client: s.client, Activities: acts, Grace: workerGrace, Logger: s.opts.Logger.With("component", "worker"),
		Started: func() { close(started) },
	}
	s.parts.run("worker", func(ctx context.Context) error { return worker.Run(ctx, cfg, workflows.Builtin()) })
	select {
	case <-started:
		return "in this process", nil
	case <-s.parts.dead:
		return "", s.parts.err()
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// startRelay comes after the worker, so that the first starts are eager already.
func (s *Stack) startRelay(context.Context) (string, error) {
	relay, err := starter.New(s.db,
		starter.NewTemporal(s.client, starter.TemporalConfig{Namespace: s.temporal.Namespace(), Eager: true}),
		starter.Config{Grace: relayGrace, Rebind: s.opts.Rebind, Logger: s.opts.Logger.With("component", "relay")})
	if err != nil {
		return "", err
	}
	s.parts.run("relay", relay.Run)
	return "in this process, starts are eager", nil
}
