package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/oncepost/oncepost/internal/testdb"
)

// terminal opens a pseudo-terminal: what is written to person is what a program reads from tty.
func terminal(t *testing.T) (person, tty *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, person)
	var locked, n int32
	for request, at := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &n} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(at))); errno != 0 {
			t.Fatal(errno)
		}
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, tty)
	return person, tty
}

// A workflow that somebody has ended is retried after a question, with the real programs, and its mail goes out once.
func TestFailedRetryOfAWorkflowAsks(t *testing.T) {
	w := one(t)
	w.must("migrate")
	w.start("oncepost", "relay").await("relay running")
	w.start("oncepost", "worker").await("worker running")
	addFault(t, w.ses, `{"preset": "throttle"}`)
	w.must("enqueue", "welcome", "--payload", welcome("first.user@example.com"), "--id", "ended")
	until(t, "a worker has begun it", func() bool {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), "ended", "")
		return err == nil && len(d.GetPendingActivities()) == 1 && d.GetPendingActivities()[0].GetAttempt() > 1
	})
	if err := w.temporal.TerminateWorkflow(t.Context(), "ended", "", "a mistake"); err != nil {
		t.Fatal(err)
	}
	clearFaults(t, w.ses)
	until(t, "it is listed", func() bool {
		_, out := run(t, w.env, "oncepost", "failed", "list", "--kind", "workflow")
		return strings.Contains(out, "Terminated")
	})
	for _, c := range []struct {
		answer string
		code   int
		says   string
	}{{"\n", 1, "nothing was retried"}, {"n\n", 1, "nothing was retried"}, {"y\n", 0, "ended runs again, as run"}} {
		person, tty := terminal(t)
		p := startWith(t, tty, w.env, "oncepost", "failed", "retry", "--all")
		p.await("Retry 1 failed messages? [y/N]")
		if _, err := person.WriteString(c.answer); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != c.code || !strings.Contains(p.out.String(), c.says) {
			t.Errorf("answer %q: exit code %d, want %d and %q: %s", c.answer, code, c.code, c.says, p.out)
		}
	}
	if err := w.temporal.GetWorkflow(t.Context(), "ended", "").Get(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if count := w.mailsByMessage(1); count["ended"] != 1 {
		t.Errorf("mails %v", count)
	}
	fails(t, w.env, 1, []string{"has not failed"}, "oncepost", "failed", "retry", "ended")
}
