package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/schemas"
)

type idleCmd struct {
	Binary  string `default:"bin/oncepost" help:"The production binary."`
	Seconds int    `default:"20"`
}

func notify(s os.Signal) <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, s)
	return c
}

// startTemporal starts an embedded server with oncepost's search attributes, in memory or on a folder.
func startTemporal(b *bench, dir string) (*devtemporal.Server, error) {
	return devtemporal.Start(b.ctx, devtemporal.Options{Dir: dir, SearchAttributes: map[string]enums.IndexedValueType{
		schemas.AttributeState: enums.INDEXED_VALUE_TYPE_KEYWORD, schemas.AttributeSince: enums.INDEXED_VALUE_TYPE_DATETIME,
	}})
}

func (w *world) process(binary, temporal string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, binary, args...)
	cmd.Env = append(os.Environ(), "ONCEPOST_MYSQL_DSN="+w.dsn, "TEMPORAL_ADDRESS="+temporal, "TEMPORAL_NAMESPACE=default",
		"ONCEPOST_LOG_LEVEL=warn")
	cmd.Stderr = os.Stderr
	return cmd
}

// Run measures the production binary's relay with nothing to do.
func (c *idleCmd) Run(b *bench) error {
	temporal, err := startTemporal(b, "")
	if err != nil {
		return err
	}
	defer temporal.Stop()
	return b.each(func(w *world) error {
		cmd := w.process(c.Binary, temporal.FrontendAddr(), "relay")
		if err := cmd.Start(); err != nil {
			return err
		}
		time.Sleep(5 * time.Second) // it has settled
		before, questions, began := cpu(cmd.Process.Pid), w.questions(), time.Now()
		mysqld := cpu(w.server.PID())
		time.Sleep(time.Duration(c.Seconds) * time.Second)
		d := time.Since(began).Seconds()
		relay := 100 * (cpu(cmd.Process.Pid) - before).Seconds() / d
		statements := float64(w.questions()-questions-1) / d // the last reading is one itself
		server := 100 * (cpu(w.server.PID()) - mysqld).Seconds() / d
		rss := status(cmd.Process.Pid, "VmRSS")
		if err := firstError(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			return err
		}
		w.printf("idle: relay %.2f %% of a core, %.1f statements/s, RSS %d MiB; mysqld %.2f %% of a core", relay, statements, rss>>10, server)
		return nil
	})
}

func (w *world) questions() (n int64) {
	var name string
	err := w.db.QueryRowContext(w.ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: read Questions:", err)
	}
	return n
}
