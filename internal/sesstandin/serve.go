package sesstandin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// shutdownGrace is how long a request that is being answered may take when the server stops.
const shutdownGrace = 500 * time.Millisecond

// ErrClosed is returned by Serve of a closed Server.
var ErrClosed = errors.New("SES stand-in is closed")

// Serve answers on l until ctx ends or Close is called, and then returns nil. It closes l, and
// all its goroutines have ended when it returns. Scripted delays are cut short by the end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.beginServe() {
		return errors.Join(ErrClosed, l.Close())
	}
	defer s.serving.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	case <-s.closing:
		cancel()
	}
	return stop(ctx, srv, served)
}

func (s *Server) beginServe() bool {
	s.servingMu.Lock()
	defer s.servingMu.Unlock()
	select {
	case <-s.closing:
		return false
	default:
		s.serving.Add(1)
		return true
	}
}

// stop lets answers under way finish for a moment, and then closes the connections.
func stop(ctx context.Context, srv *http.Server, served <-chan error) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := srv.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// Close ends every Serve, waits for it, and closes the mail file. It may be called repeatedly.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.servingMu.Lock()
		close(s.closing)
		s.servingMu.Unlock()
		s.serving.Wait()
		if s.journal != nil {
			s.closeErr = s.journal.close()
		}
	})
	return s.closeErr
}
