package devstack

import (
	"context"
	"errors"
	"net"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/watching"
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
	s.tally = &serve.Tally{}
	cfg := serve.Config{
		Client: s.client, Namespace: s.temporal.Namespace(), DB: s.db, Activities: acts, Grace: workerGrace, Logger: s.opts.Logger.With("component", "worker"),
		Started: func() { close(started) }, Tally: s.tally,
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
	s.relay = relay
	s.parts.run("relay", relay.Run)
	return "in this process, starts are eager", nil
}

// startPage watches, and serves the status page.
func (s *Stack) startPage(ctx context.Context) (string, error) {
	l, err := listen(ctx, s.memory.PagePort)
	if err != nil {
		return "", err
	}
	watch, err := watching.New(watching.Config{
		Watch: config.Watch{UI: s.temporal.UIURL()}, Listener: l, DB: s.db, Client: s.client, Namespace: s.temporal.Namespace(), Version: "dev",
		Logger: s.opts.Logger.With("component", "watch"), Relay: s.relay, Tally: s.tally, Quiet: true,
	})
	if err != nil {
		return "", errors.Join(err, l.Close())
	}
	s.pageURL, s.memory.PagePort = "http://"+l.Addr().String()+"/", l.Addr().(*net.TCPAddr).Port
	s.parts.run("status page", watch.Run)
	return "in this process", nil
}
