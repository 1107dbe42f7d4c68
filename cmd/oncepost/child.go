package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/oncepost/oncepost/internal/config"
)

// child is a command that is run to its end. Its pid is negative where it has a process group of its own, which signals go to.
type child struct {
	cmd       *exec.Cmd
	group     bool
	killAfter time.Duration
}

// runChild runs a command. When ctx ends it gets SIGTERM, and SIGKILL so much later; so do its children, unless they have left its
// process group. Its exit code is in a config.ExitError.
func runChild(ctx context.Context, a *app, command []string, killAfter time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c := child{exec.Command(command[0], command[1:]...), !atTerminal(a), killAfter} //nolint:gosec,noctx // the caller's own command; ctx is heeded below
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = a.stdin, a.stdout, a.stderr
	c.cmd.SysProcAttr = childAttributes(c.group)
	runtime.LockOSThread() // the child gets its parent's death when this thread ends
	defer runtime.UnlockOSThread()
	if err := c.cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return config.ExitError{Code: codeNotFound, Err: err}
		}
		return config.ExitError{Code: codeNotRunning, Err: err}
	}
	ended := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.stopWith(ctx, ended)
	}()
	err := c.cmd.Wait()
	close(ended)
	<-stopped
	return c.outcome(ctx, err)
}

// atTerminal: a process group in the background could not read from the terminal.
func atTerminal(a *app) bool {
	f, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// stopWith stops the command when ctx ends before it does. What is left of its group has the same time.
func (c child) stopWith(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	c.signal(syscall.SIGTERM)
	const look = 20 * time.Millisecond
	for end := time.Now().Add(c.killAfter); time.Now().Before(end); time.Sleep(look) {
		select {
		case <-ended:
			if !c.group || !c.signal(0) {
				return
			}
		default:
		}
	}
	c.signal(syscall.SIGKILL)
	<-ended
}

// signal tells whether there was anybody to get it.
func (c child) signal(s syscall.Signal) bool {
	pid := c.cmd.Process.Pid
	if c.group {
		pid = -pid
	}
	return syscall.Kill(pid, s) == nil
}

func (c child) outcome(ctx context.Context, err error) error {
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited):
		code := exited.ExitCode()
		if s, ok := exited.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			code = codeSignal + int(s.Signal())
		}
		return config.ExitError{Code: code, Err: context.Cause(ctx)}
	case err == nil && ctx.Err() != nil: // it was stopped and ended well: nobody knows whether it did all
		return context.Cause(ctx)
	}
	return err
}
