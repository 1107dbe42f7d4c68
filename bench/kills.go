package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/workflows"
)

type killsCmd struct {
	Binary string   `default:"bin/oncepost"`
	Types  []string `default:"payment_failed,welcome" help:"payment_failed is held when nobody knows whether it was sent, welcome is sent once more."`
	Sends  int      `default:"5000"`
	Kills  int      `default:"300"`
	Slots  int      `default:"8" help:"Sends in flight in a worker."`
}

// Run kills the worker at random instants while it sends, resolves what is parked as the inbox shows it, and counts.
func (c *killsCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		for _, eventType := range c.Types {
			if err := c.measure(b, w, eventType); err != nil {
				return fmt.Errorf("%s: %w", eventType, err)
			}
		}
		return nil
	})
}

func (c *killsCmd) measure(b *bench, w *world, eventType string) error {
	s, err := w.openShop(b, c.Binary, 30*time.Millisecond, time.Millisecond)
	if err != nil {
		return err
	}
	return errors.Join(c.kill(s, eventType), s.stop())
}

func (c *killsCmd) kill(s *shop, eventType string) error {
	ids, err := s.order(eventType, eventType, c.Sends)
	if err != nil {
		return err
	}
	began := time.Now()
	kills, inFlight := 0, 0
	for ; kills < c.Kills; kills++ {
		n, err := c.live(s)
		if err != nil {
			return err
		}
		inFlight += n
	}
	last := s.worker(c.Binary, 100)
	if err := last.Start(); err != nil {
		return err
	}
	resolved, err := s.finish(ids)
	err = errors.Join(err, last.Process.Signal(syscall.SIGTERM), last.Wait())
	if err != nil {
		return err
	}
	return s.count(eventType, ids, kills, inFlight, resolved, time.Since(began))
}

// live runs a worker for a random time and kills it. It says how many sends were in flight then.
func (c *killsCmd) live(s *shop) (inFlight int, err error) {
	cmd := s.worker(c.Binary, c.Slots)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	time.Sleep(300*time.Millisecond + time.Duration(rand.Int64N(int64(700*time.Millisecond))))
	if err := cmd.Process.Kill(); err != nil {
		return 0, err
	}
	_ = cmd.Wait() // killed: its exit status says only that
	_, err = s.db.ExecContext(s.ctx, "CREATE TABLE IF NOT EXISTS seen (token BINARY(16) PRIMARY KEY)")
	if err != nil {
		return 0, err
	}
	r, err := s.db.ExecContext(s.ctx, "INSERT IGNORE INTO seen SELECT token FROM sends WHERE state = 'claimed'")
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected() // those that are new: the earlier ones' claims run still
	return int(n), err
}

// finish resolves what is parked as the inbox shows it, until every workflow has closed. A Temporal that is slow to answer is
// asked again.
func (s *shop) finish(ids []string) (resolved int, err error) {
	deadline := time.Now().Add(15 * time.Minute)
	for time.Now().Before(deadline) {
		open, parked := 0, 0
		if open, parked, err = s.look(); err == nil && open == 0 {
			return resolved, nil
		}
		resolved += parked
		time.Sleep(time.Second)
	}
	return resolved, errors.Join(fmt.Errorf("of %d messages some are open still", len(ids)), err)
}

// look counts the messages that are open, and resolves those that are parked.
func (s *shop) look() (open, resolved int, err error) {
	running, err := s.list("ExecutionStatus = 'Running'")
	if err != nil {
		return 0, 0, err
	}
	waiting, err := outbox.Table{}.Pending(s.ctx, s.db, 1)
	if err != nil {
		return 0, 0, err
	}
	parked, err := s.list("OncepostState = 'parked'")
	if err != nil {
		return 0, 0, err
	}
	return len(running) + waiting, s.resolve(parked), nil
}

func (s *shop) resolve(parked []string) (n int) {
	sent := s.received()
	for _, id := range parked {
		decision := workflows.DecisionResend
		if sent[id] > 0 {
			decision = workflows.DecisionSent
		}
		h, err := s.client.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: workflows.UpdateResolve, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{workflows.Resolution{Decision: decision, By: "bench", Why: "the inbox"}},
		})
		if err == nil {
			err = h.Get(s.ctx, nil)
		}
		if err == nil {
			n++ // otherwise it has been resolved already: the list is a moment old
		}
	}
	return n
}

func (s *shop) count(eventType string, ids []string, kills, inFlight, resolved int, took time.Duration) error {
	sent := s.received()
	lost, doubled, most := 0, 0, 0
	for _, id := range ids {
		switch n := sent[id]; {
		case n == 0:
			lost++
		case n > 1:
			doubled++
			most = max(most, n)
		}
	}
	failed, err := s.list("ExecutionStatus = 'Failed'")
	if err != nil {
		return err
	}
	s.printf("kills: %s, %d sends, %d SIGKILLs of the worker, %d sends in flight then: %d lost, %d doubled (at most %d of one), %d parked and resolved, %d failed; %s",
		eventType, len(ids), kills, inFlight, lost, doubled, most, resolved, len(failed), took.Round(time.Second))
	if lost+len(failed) > 0 || most > 2 || eventType == "payment_failed" && doubled > 0 || resolved > inFlight {
		return errors.New("the promise is broken")
	}
	return nil
}
