package main

import (
	"errors"
	"fmt"
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
)

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

func (silent) Info(string, ...any) {}

func (silent) Warn(string, ...any) {}

func (silent) Error(string, ...any) {}

func (s *shop) worker(binary string, slots int) *exec.Cmd {
	cmd := s.process(binary, s.address, "worker", "--send-rate=0", fmt.Sprint("--max-sends=", slots))
	cmd.Stderr = nil // it tells of each send that an earlier worker has left
	cmd.Env = append(cmd.Env, "ONCEPOST_MAIL_FROM=mail@example.com", "AWS_ENDPOINT_URL_SES="+s.sesURL, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	return cmd
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
