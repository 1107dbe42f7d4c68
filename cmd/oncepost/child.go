package main

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/oncepost/oncepost/internal/config"
)

// runChild runs a command to its end. When ctx ends it gets SIGTERM, and SIGKILL so much later; so do its children, unless they
// have left its process group. Its exit code is in a config.ExitError.
func runChild(ctx context.Context, a *app, command []string, killAfter time.Duration) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // to run the caller's command is what the caller asks for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	runtime.LockOSThread() // the child gets its parent's death when this thread ends
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of the group; most often there is nothing
	}
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited):
		code := exited.ExitCode()
		if s, ok := exited.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			code = codeSignal + int(s.Signal())
		}
		return config.ExitError{Code: code, Err: stopped(ctx)}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return config.ExitError{Code: codeNotFound, Err: err}
	case err != nil && cmd.Process == nil:
		return config.ExitError{Code: codeNotRunning, Err: err}
	case err != nil && ctx.Err() != nil: // it ended well all the same, and nobody knows whether it did all
		return stopped(ctx)
	}
	return err
}

// stopped is why the command was stopped, or nil.
func stopped(ctx context.Context) error { return context.Cause(ctx) }
