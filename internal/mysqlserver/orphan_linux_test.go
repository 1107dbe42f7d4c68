package mysqlserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentEnv tells this test binary to be the parent of TestNoOrphans: its value is flavour and folder.
const parentEnv = "ONCEPOST_TEST_PARENT"

func TestMain(m *testing.M) {
	if job := os.Getenv(parentEnv); job != "" {
		os.Exit(beParent(job))
	}
	os.Exit(m.Run())
}

// beParent starts a server, says its process ID, and waits to be killed.
func beParent(job string) int {
	flavour, dir, _ := strings.Cut(job, ":")
	ctx := context.Background()
	r, err := Fetch(ctx, Flavour(flavour), "", os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := Start(ctx, Options{Root: r, Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.PID())
	_, err = io.Copy(io.Discard, os.Stdin) // until the test, which holds the other end, is gone
	fmt.Fprintln(os.Stderr, "not killed:", err)
	return 1
}

// A parent that is killed by SIGKILL leaves no server, and the folder can be used again.
func TestNoOrphans(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		dir := t.TempDir()
		parent, pid := startParent(t, string(r.Flavour)+":"+dir)
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("the server is not there: %v", err)
		}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for syscall.Kill(pid, 0) == nil {
			if time.Now().After(deadline) {
				t.Errorf("server %d outlives its parent", pid)
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		start(t, Options{Root: r, Dir: dir})
	})
}

func startParent(t *testing.T, job string) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+job)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err == nil {
			t.Error("the parent was not killed")
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent says no process ID: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, pid
}

// The kernel ties a child to the thread that started it. A thread of a caller may end; the server must not.
func TestServerOutlivesTheCallersThread(t *testing.T) {
	r, dir := fetched(t, MariaDB), t.TempDir()
	started := make(chan *Server)
	onEndingThread(func() {
		s, err := Start(t.Context(), Options{Root: r, Dir: dir})
		if err != nil {
			t.Error(err)
		}
		started <- s
	})
	s := <-started
	if s == nil {
		t.FailNow()
	}
	select {
	case <-s.Done():
		t.Error("the server ended with the thread:", s.Err())
	case <-time.After(500 * time.Millisecond):
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// onEndingThread runs f on a thread that ends with f. The process's first thread never ends, so it is kept busy
// meanwhile when it comes along.
func onEndingThread(f func()) {
	go func() {
		runtime.LockOSThread() // without an unlock: the thread ends with the goroutine
		if syscall.Gettid() != syscall.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		onEndingThread(func() { defer close(done); f() })
		<-done
	}()
}
