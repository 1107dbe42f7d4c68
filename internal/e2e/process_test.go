package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running program. Its output goes to the test's log when the test has failed.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when it has ended
}

// start starts a program; it is killed at the end of the test where it still runs.
func start(t *testing.T, env []string, program string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, env, program, args...)
}

// startWith starts a program with something to read.
func startWith(t *testing.T, stdin io.Reader, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: program + " " + strings.Join(args, " "), out: newOutput(), done: make(chan struct{})}
	p.cmd = exec.Command(shared.program(program), args...)
	p.cmd.Env, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = env, stdin, p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s, process %d:\n%s", p.name, p.cmd.Process.Pid, p.out)
		}
	})
	return p
}

// await returns the output once text is in it.
func (p *process) await(text string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		got, changed := p.out.now()
		if strings.Contains(got, text) {
			return got
		}
		select {
		case <-changed:
		case <-p.done:
			if got, _ := p.out.now(); strings.Contains(got, text) {
				return got
			}
			p.t.Fatalf("%s ended and never said %q", p.name, text)
		case <-ctx.Done():
			p.t.Fatalf("%s has not said %q in %s", p.name, text, patience)
		}
	}
}

// exit waits for the end and returns the exit code, or -1 after a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s still runs after %s", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop sends a signal that asks for an end in order: exit code 0, within seconds.
func (p *process) stop(sig syscall.Signal) {
	p.t.Helper()
	const seconds = 10 * time.Second
	began := time.Now()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("%s to %s: %v", sig, p.name, err)
	}
	if code := p.exit(); code != 0 {
		p.t.Errorf("%s: exit code %d after %s", p.name, code, sig)
	}
	took := time.Since(began)
	p.t.Logf("%s ended %s after %s", p.name, took.Round(time.Millisecond), sig)
	if took > seconds {
		p.t.Errorf("%s took %s to end", p.name, took)
	}
}

// kill ends it as a crash would, and waits until it is gone.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %s: %v", p.name, err)
	}
	<-p.done
}

// run runs a program to its end.
func run(t *testing.T, env []string, program string, args ...string) (code int, out string) {
	t.Helper()
	p := start(t, env, program, args...)
	code = p.exit()
	return code, p.out.String()
}

// output collects what a program writes and tells when there is more.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(b)
}

func (o *output) now() (text string, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.changed
}

func (o *output) String() string {
	text, _ := o.now()
	return text
}

// until polls a condition that no signal tells of.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in %s: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
