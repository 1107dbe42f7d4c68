package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

type churnCmd struct {
	Binary string `default:"bin/oncepost"`
	Rows   int    `default:"10000"`
}

// Run lets three relay processes work while sessions are killed, one is SIGKILLed, one is added, transactions stay open and
// others roll back; then it counts.
func (c *churnCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		dir, err := os.MkdirTemp("", "oncepost-bench-temporal-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		temporal, err := startTemporal(b, filepath.Join(dir, "t"))
		if err != nil {
			return err
		}
		err = c.churn(w, temporal)
		return firstError(err, temporal.Stop())
	})
}

func (c *churnCmd) churn(w *world, temporal *devtemporal.Server) error {
	began := time.Now()
	relays := make([]*exec.Cmd, 4)
	start := func(i int) error {
		relays[i] = w.process(c.Binary, temporal.FrontendAddr(), "relay")
		return relays[i].Start()
	}
	for i := range 3 {
		if err := start(i); err != nil {
			return err
		}
	}
	p := &producers{world: w, committed: map[string]bool{}, rolledBack: map[string]bool{}}
	done := make(chan error, 1)
	go func() { done <- p.run(c.Rows) }()
	ctx, cancel := context.WithCancel(w.ctx)
	kills := make(chan int, 1)
	go func() { kills <- w.killSessions(ctx) }()
	time.Sleep(2 * time.Second)
	if err := firstError(relays[0].Process.Kill(), start(3)); err != nil {
		cancel()
		return err
	}
	_ = relays[0].Wait() // killed: its exit status says only that
	err := <-done
	if err == nil {
		err = until(w.ctx, func() bool {
			time.Sleep(50 * time.Millisecond)
			n, err := outbox.Table{}.Pending(w.ctx, w.db, 1)
			return err == nil && n == 0
		})
	}
	cancel()
	killed := <-kills
	for _, r := range relays[1:] {
		err = firstError(err, r.Process.Signal(syscall.SIGTERM), r.Wait())
	}
	if err != nil {
		return err
	}
	return p.report(temporal, killed, time.Since(began))
}

// killSessions ends the session of a random relay every 300 ms.
func (w *world) killSessions(ctx context.Context) (n int) {
	for ctx.Err() == nil {
		time.Sleep(300 * time.Millisecond)
		var id int64
		name := locks.Name("bench", fmt.Sprintf("relay %02d", rand.IntN(4)))
		if err := w.db.QueryRowContext(ctx, "SELECT COALESCE(IS_USED_LOCK(?), 0)", name).Scan(&id); err != nil || id == 0 {
			continue
		}
		if _, err := w.db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err == nil {
			n++
		}
	}
	return n
}

// producers commit rows, some after staying open for a while, and roll others back.
type producers struct {
	*world
	mu                    sync.Mutex
	committed, rolledBack map[string]bool
}

func (p *producers) run(rows int) error {
	errs := make(chan error, 8)
	for range 8 {
		go func() { errs <- p.produce(rows / 8) }()
	}
	var first error
	for range 8 {
		first = firstError(first, <-errs)
	}
	return first
}

func (p *producers) produce(rows int) error {
	for rows > 0 {
		n := min(rows, 1+rand.IntN(20))
		rollback := rand.IntN(5) == 0
		if err := p.transaction(n, rollback); err != nil {
			return err
		}
		if !rollback {
			rows -= n
		}
	}
	return nil
}

func (p *producers) transaction(n int, rollback bool) error {
	tx, err := p.db.BeginTx(p.ctx, nil)
	if err != nil {
		return err
	}
	ms := make([]outbox.Message, n)
	for i := range ms {
		ms[i] = outbox.Message{EventType: "welcome", Payload: map[string]string{
			"company_id": "c", "company_name": "Example", "email": "a@example.com",
		}}
	}
	ids, err := outbox.EnqueueMany(p.ctx, tx, ms)
	if err != nil {
		return firstError(err, tx.Rollback())
	}
	if rand.IntN(10) == 0 {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
	}
	into, end := p.committed, tx.Commit
	if rollback {
		into, end = p.rolledBack, tx.Rollback
	}
	if err := end(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		into[id] = true
	}
	return nil
}

// report lists every workflow and compares.
func (p *producers) report(temporal *devtemporal.Server, killed int, took time.Duration) error {
	c, err := client.Dial(client.Options{HostPort: temporal.FrontendAddr(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	found := map[string]bool{}
	var token []byte
	for {
		page, err := c.ListWorkflow(p.ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000, NextPageToken: token})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			found[e.GetExecution().GetWorkflowId()] = true
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	lost, ghosts := 0, 0
	for id := range p.committed {
		if !found[id] {
			lost++
		}
	}
	for id := range p.rolledBack {
		if found[id] {
			ghosts++
		}
	}
	p.printf("churn: %d rows committed in %s, %d sessions killed, one relay SIGKILLed, one added: %d workflows, %d lost; of %d rolled-back rows %d started",
		len(p.committed), took.Round(time.Second), killed, len(found), lost, len(p.rolledBack), ghosts)
	if lost+ghosts > 0 || len(found) != len(p.committed) {
		return fmt.Errorf("not every committed row became one workflow")
	}
	return nil
}
