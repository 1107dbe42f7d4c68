package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/workflows"
)

type dayCmd struct {
	Binary  string `default:"bin/oncepost"`
	Minutes int    `default:"10" help:"A day in so many minutes: thresholds, delays and reminders are as much shorter."`
}

// Run lets a day's normal traffic go by: mails at once and delayed, reminders, held mails whose answer is lost and that a person
// resolves, rolling restarts. People must hear of nothing but the parked mails.
func (c *dayCmd) Run(b *bench) error {
	return b.each(func(w *world) (err error) {
		t := &town{world: w, c: &deathsCmd{Binary: c.Binary, Threshold: 5 * time.Second}}
		if err := t.open(); err != nil {
			return errors.Join(err, t.close())
		}
		defer func() { err = errors.Join(err, t.close()) }()
		flows, err := client.Dial(client.Options{HostPort: t.address, Logger: silent{}})
		if err != nil {
			return err
		}
		defer flows.Close()
		if _, err := t.inbox.Inject(sesstandin.Fault{DropAfter: true, Match: "held@example.com"}); err != nil {
			return err
		}
		d := &day{town: t, flows: flows}
		for end, next := time.Now().Add(time.Duration(c.Minutes)*time.Minute), time.Now().Add(time.Minute); time.Now().Before(end); {
			if err := d.hour(); err != nil {
				return err
			}
			if time.Now().After(next) {
				if err := d.deploy(); err != nil {
					return err
				}
				next = time.Now().Add(time.Minute)
			}
		}
		return d.tell()
	})
}

// day is a town at work.
type day struct {
	*town
	flows          client.Client
	sent, resolved int
	deploys        int
}

// hour is some seconds of traffic.
func (d *day) hour() error {
	var all []outbox.Message
	for range rand.IntN(20) {
		d.sent++
		m := outbox.Message{ID: fmt.Sprintf("m:%d", d.sent), EventType: "welcome", Payload: map[string]any{"company_id": "c", "company_name": "Example", "email": "a@example.com"}}
		switch d.sent % 5 {
		case 1: // longer than the threshold of what is stuck
			m.DeliverAt = time.Now().Add(12 * time.Second)
		case 2, 3:
			email := "a@example.com"
			if d.sent%5 == 3 && d.sent%4 == 0 {
				email = "held@example.com"
			}
			m.EventType, m.Payload = "payment_failed", map[string]any{
				"subscription_id": "sub_9", "amount": "12.50", "currency": "EUR", "reregister_url": "https://example.com/card", "remind_after": "15s",
				"admins": []map[string]string{{"email": email, "name": "A"}},
			}
		}
		all = append(all, m)
	}
	if len(all) > 0 {
		if _, err := outbox.EnqueueMany(d.ctx, d.db, all); err != nil {
			return err
		}
	}
	time.Sleep(2 * time.Second)
	return d.resolve()
}

// resolve is the person.
func (d *day) resolve() error {
	s := shop{world: d.world, client: d.flows}
	ids, err := s.list("OncepostState = 'parked' AND ExecutionStatus = 'Running'")
	for _, id := range ids {
		handle, updateErr := d.flows.UpdateWorkflow(d.ctx, client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: workflows.UpdateResolve, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{workflows.Resolution{Decision: workflows.DecisionSent, By: "bench", Why: "a day"}},
		})
		if updateErr == nil {
			updateErr = handle.Get(d.ctx, nil)
		}
		if updateErr == nil { // visibility may list one that has just been resolved
			d.resolved++
		}
	}
	return err
}

// deploy restarts relay and worker in order, one after the other.
func (d *day) deploy() error {
	d.deploys++
	for _, role := range []string{"relay", "worker"} {
		cmd := map[string]*exec.Cmd{"relay": d.relay, "worker": d.worker}[role]
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait(), d.start(role)); err != nil {
			return err
		}
	}
	return nil
}

func (d *day) tell() error {
	parked := 0
	var wrong []string
	for _, m := range d.inbox.Mails() {
		switch {
		case !strings.HasPrefix(m.Subject, "[alert] "):
		case strings.Contains(m.Subject, "is parked"):
			parked++
		default:
			wrong = append(wrong, m.Subject)
		}
	}
	d.printf("day: %d messages, %d parked and resolved, %d rolling restarts: %d alerts of parked mails, %d false alarms %q",
		d.sent, d.resolved, d.deploys, parked, len(wrong), wrong)
	return nil
}
