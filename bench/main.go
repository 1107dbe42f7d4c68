// Command bench measures what the README claims, on this machine, against real servers with durable settings. Each figure
// stands beside the server's own ceiling, measured in the same run. See `go run ./bench --help`.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

type cli struct {
	Database []string `default:"mysql,mariadb" help:"Which servers."`

	Drain   drainCmd   `cmd:"" help:"Rows per second of one relay with a no-op starter."`
	Latency latencyCmd `cmd:"" help:"Commit to start call, open loop, and what the relay costs the server."`
	Idle    idleCmd    `cmd:"" help:"What an idle 'oncepost relay' costs."`
	Sizes   sizesCmd   `cmd:"" help:"Self-found sizes against the best hand-set ones."`
	Express expressCmd `cmd:"" help:"A priority-1 row behind a large backlog."`
	Large   largeCmd   `cmd:"" help:"Memory of a relay over rows of 1 MiB."`
	Kills   killsCmd   `cmd:"" help:"Workers killed while they send: what is lost, doubled, parked."`
	Ledger  ledgerCmd  `cmd:"" help:"Mails per second with the ledger and without."`
	Locks   locksCmd   `cmd:"" help:"What a named lock costs, and how soon a dead holder's is free."`
	Deaths  deathsCmd  `cmd:"" help:"How soon people hear of the death of each part."`
	Day     dayCmd     `cmd:"" help:"A day of normal traffic: no false alarm."`
	Status  statusCmd  `cmd:"" help:"How long 'oncepost status' takes on a large backlog."`
	Churn   churnCmd   `cmd:"" help:"Three relays under churn, on a real Temporal."`
	Mail    mailCmd    `cmd:"" help:"Commit to accepted mail on the whole stack, one at a time."`
	Child   childCmd   `cmd:"" hidden:"" help:"A process of another benchmark."`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("bench"), kong.Description("Measures oncepost on this machine."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := k.Run(&bench{ctx: ctx, databases: c.Database}); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

type bench struct {
	ctx       context.Context
	databases []string
}

// world is one server with oncepost's tables, empty.
type world struct {
	ctx    context.Context
	server *mysqlserver.Server
	dsn    string
	db     *sql.DB
	name   string
}

// each runs f on every server asked for, with durable settings: a commit waits for the disk, with the binlog as it comes.
func (b *bench) each(f func(w *world) error) error {
	for _, name := range b.databases {
		flavour, err := mysqlserver.ParseFlavour(name)
		if err != nil {
			return err
		}
		if err := b.on(flavour, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) on(flavour mysqlserver.Flavour, f func(w *world) error) error {
	root, err := mysqlserver.Locate(b.ctx, flavour, "", os.Stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "oncepost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := mysqlserver.Start(b.ctx, mysqlserver.Options{Root: root, Dir: dir, Durable: true, Flags: []string{
		"--innodb-buffer-pool-size=1G", "--max-connections=500",
	}})
	if err != nil {
		return err
	}
	defer server.Kill()
	admin, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := admin.ExecContext(b.ctx, "CREATE DATABASE bench"); err != nil {
		return err
	}
	w := &world{ctx: b.ctx, server: server, dsn: server.DSN("bench"), name: fmt.Sprintf("%-8s", flavour)}
	if w.db, err = mysqldb.Open(mysqldb.Config{DSN: w.dsn}); err != nil {
		return err
	}
	defer w.db.Close()
	if _, err := migrate.Up(b.ctx, w.db); err != nil {
		return err
	}
	return f(w)
}

func (w *world) printf(format string, args ...any) {
	fmt.Printf(w.name+" "+format+"\n", args...)
}

// fill inserts n rows with payloads of size bytes, from 4 connections.
func (w *world) fill(n, size, priority int) error {
	payload := []byte(`{"a":"` + strings.Repeat("x", max(1, size-8)) + `"}`)
	per := min(1000, max(1, 3<<20/size))
	work := make(chan int, 4)
	errs := make(chan error, 4)
	for range 4 {
		go func() {
			for k := range work {
				ms := make([]outbox.Message, k)
				for i := range ms {
					ms[i] = outbox.Message{EventType: "welcome", Payload: payload, Priority: priority}
				}
				if _, err := outbox.EnqueueMany(w.ctx, w.db, ms); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	ended := 0
feed:
	for n > 0 {
		k := min(n, per)
		select {
		case work <- k:
			n -= k
		case first = <-errs:
			ended++
			break feed
		}
	}
	close(work)
	for ; ended < 4; ended++ {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// noop is a Starter that takes a given time and starts nothing.
type noop struct {
	latency time.Duration
	started func(row *outbox.Row)
}

func (n noop) Start(_ context.Context, row *outbox.Row, _ time.Duration) starter.Outcome {
	if n.started != nil {
		n.started(row)
	}
	if n.latency > 0 {
		time.Sleep(n.latency)
	}
	return starter.Outcome{}
}

func (noop) Namespace(context.Context) (string, string, starter.Outcome) {
	return "bench", "bench", starter.Outcome{}
}

// relay runs a relay over w until stop is called.
func (w *world) relay(s starter.Starter, cfg starter.Config) (r *starter.Relay, stop func() error, err error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	db, err := mysqldb.Open(mysqldb.Config{DSN: w.dsn})
	if err != nil {
		return nil, nil, err
	}
	if r, err = starter.New(db, s, cfg); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() error {
		cancel()
		err := <-done
		return firstError(err, db.Close())
	}, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// until waits for ok, which is asked every millisecond.
func until(ctx context.Context, ok func() bool) error {
	for !ok() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
