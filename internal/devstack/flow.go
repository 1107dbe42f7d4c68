package devstack

import (
	"context"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/starter"
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
	started := make(chan struct{})
	cfg := serve.Config{
		Client: s.client, Namespace: s.temporal.Namespace(), DB: s.db, Activities: acts, Grace: workerGrace, Logger: s.opts.Logger.With("component", "worker"),
		Started: func() { close(started) },
	}
	s.parts.run("worker", func(ctx context.Context) error { return serve.Run(ctx, cfg) })
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
