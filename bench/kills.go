package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/sesstandin"
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

// shop is everything but the worker.
type shop struct {
	*world
	inbox   *sesstandin.Server
	sesURL  string
	address string // of Temporal
	client  client.Client
	stop    func() error
}

// openShop starts a Temporal, a stand-in and a relay. Its folder is its own, so that message IDs may come again.
func (w *world) openShop(b *bench, binary string, delay, answerDelay time.Duration) (*shop, error) {
	dir, err := os.MkdirTemp("", "oncepost-bench-temporal-")
	if err != nil {
		return nil, err
	}
	temporal, err := startTemporal(b, filepath.Join(dir, "t"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	inbox, err := sesstandin.New(sesstandin.Config{MaxMails: 1 << 20, MaxBytes: 1 << 30})
	if err != nil {
		return nil, errors.Join(err, temporal.Stop(), os.RemoveAll(dir))
	}
	if f := (sesstandin.Fault{Delay: sesstandin.Duration(delay), AnswerDelay: sesstandin.Duration(answerDelay)}); f != (sesstandin.Fault{}) {
		if _, err := inbox.Inject(f); err != nil {
			return nil, errors.Join(err, temporal.Stop(), os.RemoveAll(dir))
		}
	}
	server := httptest.NewServer(inbox.Handler())
	s := &shop{world: w, inbox: inbox, sesURL: server.URL, address: temporal.FrontendAddr()}
	relay := w.process(binary, s.address, "relay", "--rebind")
	stop := func() error {
		server.Close()
		return errors.Join(inbox.Close(), temporal.Stop(), os.RemoveAll(dir))
	}
	if s.client, err = client.Dial(client.Options{HostPort: s.address, Logger: silent{}}); err != nil {
		return nil, errors.Join(err, stop())
	}
	if err := relay.Start(); err != nil {
		return nil, errors.Join(err, stop())
	}
	s.stop = func() error {
		s.client.Close()
		return errors.Join(relay.Process.Signal(syscall.SIGTERM), relay.Wait(), stop())
	}
	return s, nil
}

// silent drops the SDK's logs.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func (s *shop) worker(binary string, slots int) *exec.Cmd {
	cmd := s.process(binary, s.address, "worker", "--send-rate=0", fmt.Sprint("--max-sends=", slots))
	cmd.Stderr = nil // it tells of each send that an earlier worker has left
	cmd.Env = append(cmd.Env, "ONCEPOST_MAIL_FROM=mail@example.com", "AWS_ENDPOINT_URL_SES="+s.sesURL, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	return cmd
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

// order enqueues n messages with IDs that begin with name.
func (s *shop) order(name, eventType string, n int) (ids []string, err error) {
	for i := 0; i < n; i += 100 {
		ms := make([]outbox.Message, min(100, n-i))
		for j := range ms {
			ms[j] = outbox.Message{ID: fmt.Sprintf("%s:%d", name, i+j), EventType: eventType, Payload: map[string]any{
				"company_id": "c", "company_name": "Example", "email": "a@example.com",
				"subscription_id": "sub_9", "amount": "12.50", "currency": "EUR", "reregister_url": "https://example.com/card", "remind_after": "0s",
				"admins": []map[string]string{{"email": "a@example.com", "name": "A"}},
			}}
		}
		some, err := outbox.EnqueueMany(s.ctx, s.db, ms)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
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

// received counts the inbox's mails by message.
func (s *shop) received() map[string]int {
	sent := map[string]int{}
	for _, m := range s.inbox.Mails() {
		sent[m.MessageID]++
	}
	return sent
}

func (s *shop) list(query string) (ids []string, err error) {
	var token []byte
	for {
		r, err := s.client.ListWorkflow(s.ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000, NextPageToken: token})
		if err != nil {
			return nil, err
		}
		for _, e := range r.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if token = r.GetNextPageToken(); len(token) == 0 {
			return ids, nil
		}
	}
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
