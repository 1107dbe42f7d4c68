package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopTimeout is how long a server may take to end in order before it is killed.
const stopTimeout = 30 * time.Second

// Done is closed when the server's process is gone, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.proc.done }

// Wait returns when the server's process is gone, and then what Err returns.
func (s *Server) Wait() error {
	<-s.proc.done
	return s.Err()
}

// Err is nil while the server runs and after Stop and Kill. After an exit that nobody asked for it says how the
// process ended, with the last lines of its log.
func (s *Server) Err() error {
	if !s.proc.exited() || s.ending.Load() {
		return nil
	}
	how := "exit status 0"
	if s.proc.err != nil {
		how = s.proc.err.Error()
	}
	return fmt.Errorf("%s server on %s ended by itself: %s\n%s", s.Flavour(), s.Addr(), how, s.tail())
}

// Stop asks the server to end and waits until it is gone. When ctx ends or 30 s pass it kills the server, and says so
// in its error; the server is gone then too. A second Stop, or one after Kill, does nothing. MySQL gives connections
// that are open, idle ones too, two seconds to go away: close pools first.
func (s *Server) Stop(ctx context.Context) error {
	if s.proc.exited() {
		return s.Err()
	}
	s.ending.Store(true)
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := s.signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, s.Kill())
	}
	select {
	case <-s.proc.done:
		if s.proc.err != nil && s.proc.cmd.ProcessState.Exited() {
			return fmt.Errorf("stop %s: %w\n%s", s.Flavour(), s.proc.err, s.tail())
		}
		return nil
	case <-ctx.Done():
		err := fmt.Errorf("stop %s: not ended in order (%w), killed\n%s", s.Flavour(), ctx.Err(), s.tail())
		return errors.Join(err, s.Kill())
	}
}

// Kill ends the server at once by SIGKILL, as a crash would, and waits until it is gone.
func (s *Server) Kill() error {
	if s.proc.exited() {
		return nil
	}
	s.ending.Store(true)
	var err error
	if s.name != "" {
		// The client alone cannot kill what runs in the engine. No context: it must happen.
		err = exec.Command(s.opts.Root.exe[0], "kill", s.name).Run()
	}
	err = errors.Join(err, s.signal(syscall.SIGKILL))
	<-s.proc.done
	return err
}

// signal treats a process that is gone already as having got it.
func (s *Server) signal(sig os.Signal) error {
	err := s.proc.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
