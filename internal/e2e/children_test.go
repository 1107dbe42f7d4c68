package e2e

import (
	"context"
	"database/sql"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// descendants are the processes that a process has started, and theirs.
func descendants(t *testing.T, pid int) (found []int) {
	t.Helper()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Fatal("ps is missing: apt-get install -y procps")
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	children := map[int][]int{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		child, err1 := strconv.Atoi(fields[0])
		parent, err2 := strconv.Atoi(fields[1])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("ps: %v", err)
		}
		if !strings.HasPrefix(fields[2], "Z") { // ended, and about to be waited for
			children[parent] = append(children[parent], child)
		}
	}
	for open := children[pid]; len(open) > 0; open = open[1:] {
		found = append(found, open[0])
		open = append(open, children[open[0]]...)
	}
	return found
}

// alive tells whether there is such a process.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// awaitStarted waits until the message's row is gone from the outbox of the environment, which means that its workflow runs.
func awaitStarted(t *testing.T, env []string, id string) {
	t.Helper()
	var dsn string
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); name == "ONCEPOST_MYSQL_DSN" {
			dsn = value
		}
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	until(t, id+" is gone from the outbox", func() bool {
		var n int
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM outbox_messages WHERE message_id = ?", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}
