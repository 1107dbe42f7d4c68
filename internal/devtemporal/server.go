package devtemporal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"
)

// Server is a running Temporal server.
type Server struct {
	opts   Options
	ports  ports
	log    *logger
	lock   *os.File
	server temporal.Server // nil until it has started
	ui     *webUI          // nil without UI
	client client.Client   // for the namespaces

	stopOnce sync.Once
	stopErr  error
}

// Start starts the server and returns when its frontend answers and a workflow with o's search attributes can be
// started in o.Namespace. ctx bounds the start only; the server runs until Stop.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start temporal: %w", err)
	}
	s := &Server{opts: o, log: newLogger(o.Logger)}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start temporal: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	if s.lock, err = lockDir(s.opts.Dir); err != nil {
		return err
	}
	if err := s.startOn(func() (ports, error) { return choosePorts(ctx, s.opts) }); err != nil {
		return err
	}
	if s.client, err = s.dial(ctx); err != nil {
		return err
	}
	if err := s.awaitNamespace(ctx, s.opts.Namespace); err != nil {
		return err
	}
	s.log.ready.Store(true)
	if s.ports.UI != 0 {
		if s.ui, err = startUI(ctx, s.ports, s.opts.Namespace); err != nil {
			return err
		}
	}
	return s.ports.remember(s.opts.Dir)
}

// startOn starts the server on the ports that choose finds. Between the look at a port and the server's bind another process may
// take it; others are chosen then.
func (s *Server) startOn(choose func() (ports, error)) (err error) {
	const tries = 3
	for try := 1; ; try++ {
		if s.ports, err = choose(); err != nil {
			return err
		}
		store, err := openStore(s.opts)
		if err != nil {
			return err
		}
		err = s.startServer(serverConfig(store, s.ports))
		if err == nil || try == tries || !strings.Contains(err.Error(), "already in use") {
			return err
		}
		s.opts.Logger.Info("port taken meanwhile, trying others", "error", err)
	}
}

// startServer returns as an error what the server would end the process for, such as a port that has just been taken.
func (s *Server) startServer(cfg *config.Config) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fatal:
			err = p
		default:
			panic(p)
		}
	}()
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts(s.ports)),
		temporal.WithLogger(s.log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
		temporal.WithDynamicConfigClient(dynamicConfig(s.opts.DynamicConfig)),
	)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return errors.Join(err, server.Stop())
	}
	s.server = server
	return nil
}

// FrontendAddr is the address for Temporal clients, host:port.
func (s *Server) FrontendAddr() string { return localhost(s.ports.Frontend) }

// UIURL is the web UI's address, or "" without UI.
func (s *Server) UIURL() string {
	if s.ports.UI == 0 {
		return ""
	}
	return "http://" + localhost(s.ports.UI)
}

// Namespace is the one that Start made.
func (s *Server) Namespace() string { return s.opts.Namespace }

// Stop ends the UI and the server, waits until they are gone, and frees Dir. Workflows that run go on after the next
// Start on the same Dir. Further calls return what the first one did.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.log.quiet.Store(true)
		if s.ui != nil {
			s.ui.stop()
		}
		if s.client != nil {
			s.client.Close()
		}
		if s.server != nil {
			s.stopErr = s.server.Stop()
		}
		if s.lock != nil {
			s.stopErr = errors.Join(s.stopErr, s.lock.Close())
		}
	})
	return s.stopErr
}
