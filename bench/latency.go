package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

type latencyCmd struct {
	Rate    int `default:"200" help:"Messages a second."`
	Seconds int `default:"20"`
}

// Run lets another process insert at a fixed rate, first without a relay (what the inserts alone cost the server), then with
// one.
func (c *latencyCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		_, alone, err := c.produce(w)
		if err != nil {
			return err
		}
		if _, err := w.relayDrain(c.Rate*c.Seconds, starter.Config{}); err != nil {
			return err
		}
		var mu sync.Mutex
		started := map[string]time.Time{}
		r, stop, err := w.relay(noop{started: func(row *outbox.Row) {
			now := time.Now()
			mu.Lock()
			started[row.MessageID] = now
			mu.Unlock()
		}}, starter.Config{})
		if err != nil {
			return err
		}
		commits, both, err := c.produce(w)
		if err == nil {
			err = until(w.ctx, func() bool { return r.Stats().Deleted >= int64(len(commits)) })
		}
		polls := r.Stats().Polls
		if err := firstError(err, stop()); err != nil {
			return err
		}
		var all []time.Duration
		for id, at := range commits {
			all = append(all, started[id].Sub(at))
		}
		slices.Sort(all)
		w.printf("latency: %d/s for %d s, commit to start call: p50 %.1f ms, p99 %.1f ms, max %.1f ms; the relay's statements cost mysqld %.1f %% of a core (inserts alone %.1f %%); %.0f polls/s",
			c.Rate, c.Seconds, ms(all[len(all)/2]), ms(all[len(all)*99/100]), ms(all[len(all)-1]), both-alone, alone,
			float64(polls)/float64(c.Seconds))
		return nil
	})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// produce runs the producer process, and returns when each message was committed and how many percent of a core mysqld used.
func (c *latencyCmd) produce(w *world) (commits map[string]time.Time, percent float64, err error) {
	cmd := exec.CommandContext(w.ctx, os.Args[0], "child", "produce", w.dsn, strconv.Itoa(c.Rate), strconv.Itoa(c.Seconds))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	before, began := cpu(w.server.PID()), time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	commits, err = readCommits(out)
	percent = 100 * (cpu(w.server.PID()) - before).Seconds() / time.Since(began).Seconds()
	return commits, percent, firstError(err, cmd.Wait())
}

func readCommits(r io.Reader) (map[string]time.Time, error) {
	commits := map[string]time.Time{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		id, at, _ := strings.Cut(lines.Text(), " ") // without a space the time does not parse
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, err
		}
		commits[id] = time.Unix(0, n)
	}
	return commits, lines.Err()
}

// cpu is the processor time that a process has used, to the nanosecond: the scheduler's own account of each thread. (The
// ticks of /proc/PID/stat count a thread that wakes up by a timer too often.)
func cpu(pid int) (total time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	for _, thread := range threads {
		b, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(b), &ns); err == nil {
			total += time.Duration(ns)
		}
	}
	return total
}

// childCmd is a process that another benchmark starts.
type childCmd struct {
	What string   `arg:""`
	Args []string `arg:"" optional:""`
}

// Run does what the parent asks for.
func (c *childCmd) Run(b *bench) error {
	switch c.What {
	case "produce":
		return produce(b.ctx, c.Args)
	case "relay":
		return relayChild(b.ctx, c.Args)
	case "temporal":
		return temporalChild(b, c.Args[0])
	}
	return fmt.Errorf("no child %q", c.What)
}

// produce inserts at a fixed rate whatever the server does (open loop), and prints each ID with the time of its commit.
func produce(ctx context.Context, args []string) error {
	rate, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	db, err := mysqldb.Open(mysqldb.Config{DSN: args[0]})
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(32)
	payload := []byte(`{"a":"` + strings.Repeat("x", 490) + `"}`)
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make(chan error, rate*seconds)
	out := bufio.NewWriter(os.Stdout)
	began := time.Now()
	for i := range rate * seconds {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		wg.Go(func() {
			id, err := outbox.Enqueue(ctx, db, outbox.Message{EventType: "welcome", Payload: payload})
			at := time.Now()
			if err != nil {
				errs <- err
				return
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "%s %d\n", id, at.UnixNano())
		})
	}
	wg.Wait()
	close(errs)
	return firstError(<-errs, out.Flush())
}
