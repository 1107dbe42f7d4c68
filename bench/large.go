package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/starter"
)

type largeCmd struct {
	Rows int `default:"10000"`
}

// Run fills the table with rows of 1 MiB and watches the memory of a relay in another process.
func (c *largeCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		if err := w.fill(c.Rows, 1<<20-64, 3); err != nil {
			return err
		}
		cmd := exec.CommandContext(w.ctx, os.Args[0], "child", "relay", w.dsn)
		cmd.Stderr = os.Stderr
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		err := until(w.ctx, func() bool {
			time.Sleep(100 * time.Millisecond)
			var n int
			err := w.db.QueryRowContext(w.ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM outbox_messages WHERE message_id < '~' LIMIT 1) AS p").Scan(&n)
			return err == nil && n == 0
		})
		peak := status(cmd.Process.Pid, "VmHWM")
		d := time.Since(began)
		if err := firstError(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			return err
		}
		w.printf("large: %d rows of 1 MiB in %s: peak RSS of the relay %d MiB", c.Rows, d.Round(time.Second), peak>>10)
		return nil
	})
}

// status reads a field of /proc/PID/status, in kB.
func status(pid int, field string) (kb int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			fmt.Sscan(value, &kb)
		}
	}
	return kb
}

// relayChild runs a relay with a starter that takes 1 ms, until a signal.
func relayChild(ctx context.Context, args []string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signals := notify(syscall.SIGTERM)
	go func() { <-signals; stop() }()
	db, err := mysqldb.Open(mysqldb.Config{DSN: args[0]})
	if err != nil {
		return err
	}
	defer db.Close()
	r, err := starter.New(db, noop{latency: time.Millisecond}, starter.Config{})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}
