package devstack

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/starter"
)

// Stack is a running stack.
type Stack struct {
	opts     Options
	parts    *parts
	memory   memory
	progress *progress

	dsn      string // of the database, the user's own or the private one
	db       *sql.DB
	temporal *devtemporal.Server
	client   client.Client
	inbox    *sesstandin.Server
	inboxURL string
	tally    *serve.Tally
	relay    *starter.Relay
	pageURL  string
}

// ErrInterrupted is returned by Start when its context ended first. Everything is stopped then.
var ErrInterrupted = errors.New("interrupted while it started")

// Start starts everything and returns when a committed row becomes a mail. ctx bounds the start only; the stack runs
// until Stop, or until a part dies (Dead), after which it must be stopped too.
func Start(ctx context.Context, o Options) (*Stack, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Stack{opts: o, parts: newParts(), progress: newProgress(o.Progress)}
	if err := s.start(ctx); err != nil {
		stopped := s.Stop()
		if ctx.Err() != nil { // what that broke off is no news
			err = ErrInterrupted
		}
		if stopped != nil {
			err = fmt.Errorf("%w: %w", err, stopped)
		}
		return nil, err
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	began := time.Now()
	if err := s.lockDir(); err != nil {
		return err
	}
	var err error
	if s.memory, err = recall(s.opts.Dir); err != nil {
		return err
	}
	s.progress.say("oncepost-dev: everything is kept in %s", s.opts.Dir)
	// These two take nearly all of the time, and need nothing of each other.
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() error { return s.progress.step(bothCtx, "database", s.startDatabase) })
	both.Go(func() error { return s.progress.step(bothCtx, "Temporal", s.startTemporal) })
	if err := both.Wait(); err != nil {
		return err
	}
	for _, step := range []struct {
		name  string
		start func(context.Context) (string, error)
	}{
		{"inbox", s.startInbox},
		{"tables", s.migrate},
		{"worker", s.startWorker},
		{"relay", s.startRelay},
		{"status page", s.startPage},
	} {
		if err := s.progress.step(ctx, step.name, step.start); err != nil {
			return err
		}
	}
	if err := s.memory.keep(s.opts.Dir); err != nil {
		return err
	}
	s.progress.say("up after %s", short(time.Since(began)))
	return nil
}

// DB is a pool on the database.
func (s *Stack) DB() *sql.DB { return s.db }

// Temporal is a client for the namespace that workflows run in.
func (s *Stack) Temporal() client.Client { return s.client }

// Inbox is the SES stand-in.
func (s *Stack) Inbox() *sesstandin.Server { return s.inbox }

// Dead is closed when a part has ended by itself. Err then says which and why.
func (s *Stack) Dead() <-chan struct{} { return s.parts.dead }

// Err is nil until Dead is closed.
func (s *Stack) Err() error { return s.parts.err() }

// Stop ends every part, the last started first, and returns when all are gone: the relay lets starts in flight finish,
// the worker sends in flight. It takes a second or two, and at most as long as a send that hangs. Further calls return
// what the first one did.
func (s *Stack) Stop() error { return s.parts.stop(s.progress) }
