package integration

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/stops"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/worker"
)

// crew is a worker as a process of its own would be: with its own pool, mailer and reports.
type crew struct {
	w    *world
	db   *stops.Stops
	said *lines
	stop func()

	mu      sync.Mutex
	reports []worker.StopReport
}

// hire runs a worker until the test ends or stop is called. Stops last one second at first.
func (w *world) hire(mailer activities.Mailer, change ...func(*serve.Config)) *crew {
	w.t.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: w.s.DSN})
	if err != nil {
		w.t.Fatal(err)
	}
	testdb.CloseAtEnd(w.t, db)
	acts, err := config.NewActivities(mailer, "")
	if err != nil {
		w.t.Fatal(err)
	}
	c := &crew{w: w, said: &lines{}}
	started, done := make(chan struct{}), make(chan error, 1)
	cfg := serve.Config{
		Client: w.c, Namespace: w.namespace, DB: db, Activities: acts, Report: c.report, Started: func() { close(started) },
		Logger: slog.New(slog.NewTextHandler(c.said, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Look:   100 * time.Millisecond, MaxSends: 4,
		Stops: stops.Config{Lease: time.Second, MaxLease: 2 * time.Second, Trial: 5 * time.Second},
	}
	for _, f := range change {
		f(&cfg)
	}
	c.db = stops.New(db, cfg.Stops)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- serve.Run(ctx, cfg) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(c.stop)
	<-started
	return c
}

func (c *crew) report(r worker.StopReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reports = append(c.reports, r)
}

// told is what the worker has reported, a word for each: the class, or "resumed".
func (c *crew) told() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for _, r := range c.reports {
		word := r.Class
		if r.Resumed {
			word = "resumed"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (c *crew) awaitTold(want string) {
	c.w.t.Helper()
	testdb.Eventually(c.w.t, "a worker reports "+want+", has "+c.told(), func() bool { return c.told() == want })
}

// awaitIdle waits until the worker has stopped for the first time, and polls no sends.
func (c *crew) awaitIdle(class string) {
	c.w.t.Helper()
	c.awaitTold(class)
	testdb.Eventually(c.w.t, "no sends are polled", func() bool { return strings.Contains(c.said.String(), "no sends are polled") })
}

// awaitStops waits until the stop has been met so many times in a row.
func (c *crew) awaitStops(n int) {
	c.w.t.Helper()
	testdb.Eventually(c.w.t, fmt.Sprintf("%d stops in a row", n), func() bool {
		all, err := c.db.Standing(c.w.t.Context())
		return err == nil && len(all) == 1 && all[0].Stops >= n
	})
}

func (w *world) requests(action string) int { return w.standin.Requests()[action] }

const sendAction = "SendRawEmail"

// enqueueMany enqueues so many welcome mails and payment failures.
func (w *world) enqueueMany(n int) (ids []string) {
	w.t.Helper()
	var all []outbox.Message
	for i := range n {
		m := welcome(fmt.Sprintf("welcome:%03d", i))
		if i%2 == 1 {
			m = paymentFailed(fmt.Sprintf("failed:%03d", i))
		}
		all, ids = append(all, m), append(ids, m.ID)
	}
	enqueue(w.t, w.s, all...)
	return ids
}

// awaitSentOnce waits until each message's workflow has completed, and sees to it that each was one mail.
func (w *world) awaitSentOnce(ids []string) {
	w.t.Helper()
	for _, id := range ids {
		if r := w.result(id); len(r.Sends) != 1 || r.Sends[0].SESMessageID == "" || r.Sends[0].Resolved != nil {
			w.t.Errorf("%s: %+v", id, r)
		}
	}
	if n := w.mails(); n != len(ids) {
		w.t.Errorf("%d mails for %d messages", n, len(ids))
	}
	for id, n := range w.mailsByMessage() {
		if n != 1 {
			w.t.Errorf("%s was sent %d times", id, n)
		}
	}
	if n := testdb.Value[int](w.t, w.s.DB, "SELECT COUNT(*) FROM sends WHERE state <> 'done' OR generation <> 0"); n != 0 {
		w.t.Errorf("%d sends are not simply done", n)
	}
}

func (w *world) mailsByMessage() map[string]int {
	all := map[string]int{}
	for _, m := range w.standin.Mails() {
		all[m.MessageID]++
	}
	return all
}

// TestSendingPausedStopsEverything: scenario 23. Both workers stop, one mail at a time is tried by one of them, and when SES sends
// again everything goes on by itself.
func TestSendingPausedStopsEverything(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		w.fault("paused", 0)
		crews := []*crew{w.hire(w.mailer), w.hire(w.mailer)}
		ids := w.enqueueMany(20)
		for _, c := range crews {
			c.awaitIdle("account_paused")
		}
		refused := w.requests(sendAction)
		crews[0].awaitStops(2)
		if n := w.requests(sendAction) - refused; n != 1 {
			w.t.Errorf("%d mails were tried when the lease had ended, want 1", n)
		}
		w.standin.ClearFaults()
		w.awaitSentOnce(ids)
		for _, c := range crews {
			c.awaitTold("account_paused resumed")
		}
	})
}

// TestTheDailyQuotaStopsSending: scenario 22. The throttling code stops sending, and no mail is tried until the quota is back.
func TestTheDailyQuotaStopsSending(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		crews := []*crew{w.hire(w.mailer), w.hire(w.mailer)}
		testdb.Eventually(w.t, "the first looks at the quota", func() bool { return w.requests("GetSendQuota") >= len(crews) })
		w.fault("daily-quota", 0)
		ids := w.enqueueMany(20)
		for _, c := range crews {
			c.awaitIdle(activities.ClassDailyQuota)
		}
		refused := w.requests(sendAction)
		crews[0].awaitStops(3)
		if n := w.requests(sendAction) - refused; n != 0 || w.requests("GetSendQuota") < 2 {
			w.t.Errorf("%d mails were tried without a quota, which was asked for %d times", n, w.requests("GetSendQuota"))
		}
		w.standin.ClearFaults()
		w.awaitSentOnce(ids)
		for _, c := range crews {
			c.awaitTold(activities.ClassDailyQuota + " resumed")
		}
	})
}

// Where the quota may not be read, a mail shows whether it is back.
func TestTheDailyQuotaThatCannotBeRead(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		if _, err := w.standin.Inject(sesstandin.Fault{Action: "GetSendQuota", Error: &sesstandin.APIError{Code: "AccessDenied", Status: 403}}); err != nil {
			w.t.Fatal(err)
		}
		w.fault("daily-quota", 0)
		c := w.hire(w.mailer)
		w.enqueueMany(4)
		c.awaitIdle(activities.ClassDailyQuota)
		refused := w.requests(sendAction)
		c.awaitStops(2)
		if n := w.requests(sendAction) - refused; n != 1 {
			w.t.Errorf("%d mails were tried, want 1", n)
		}
	})
}

// TestEveryReplyIsLost: scenario 44. No key is sent more than twice, and soon nothing more is sent at all.
func TestEveryReplyIsLost(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		w.losing.Store(true)
		crews := []*crew{w.hire(w.mailer), w.hire(w.mailer)}
		var all []outbox.Message
		for i := range 60 {
			all = append(all, welcome(fmt.Sprintf("welcome:%03d", i)))
		}
		enqueue(t, w.s, all...)
		for _, c := range crews {
			c.awaitIdle(worker.ClassUnknownRun)
		}
		lost := w.mails()
		crews[0].awaitStops(2)
		if n := w.mails() - lost; n != 1 {
			w.t.Errorf("%d mails were tried when the lease had ended, want 1", n)
		}
		w.losing.Store(false)
		for _, c := range crews {
			c.awaitTold(worker.ClassUnknownRun + " resumed")
		}
		w.awaitClosedOrParked(len(all))
		for id, n := range w.mailsByMessage() {
			if n > 2 {
				w.t.Errorf("%s was sent %d times", id, n)
			}
		}
		if n := len(w.mailsByMessage()); n != len(all) {
			w.t.Errorf("%d of %d messages were sent", n, len(all))
		}
		if lost > 30 { // 4 sends in flight in each, after 5 messages in each
			w.t.Errorf("%d mails had left when sending stopped", lost)
		}
	})
}

func (w *world) awaitClosedOrParked(n int) {
	w.t.Helper()
	count := func(query string) int64 {
		r, err := w.c.CountWorkflow(w.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil {
			w.t.Fatal(err)
		}
		return r.GetCount()
	}
	testdb.Eventually(w.t, "every workflow has completed or is parked", func() bool {
		return count("ExecutionStatus = 'Completed'")+count("OncepostState = 'parked'") == int64(n)
	})
}

// keyed is a mailer with credentials of its own, which may be refused.
type keyed struct {
	activities.Mailer
	worker.Account
	key     string
	refused atomic.Bool
}

func (k *keyed) Credentials(context.Context) string { return k.key }

func (k *keyed) Send(ctx context.Context, m activities.Mail) activities.Answer {
	if k.refused.Load() {
		return activities.Answer{Verdict: activities.VerdictStop, Class: "credentials", Scope: activities.ScopeCredentials, Text: "refused"}
	}
	return k.Mailer.Send(ctx, m)
}

// Refused credentials stop the workers that have the same, and no others.
func TestRefusedCredentialsStopTheirWorkers(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		long := func(c *serve.Config) { c.Stops.Lease, c.Stops.MaxLease = time.Minute, time.Minute }
		old := &keyed{Mailer: w.mailer, Account: w.mailer, key: "old"}
		old.refused.Store(true)
		with := []*crew{w.hire(old, long), w.hire(old, long)}
		ids := w.enqueueMany(6)
		for _, c := range with {
			c.awaitIdle("credentials")
		}
		other := w.hire(&keyed{Mailer: w.mailer, Account: w.mailer, key: "new"}, long)
		w.awaitSentOnce(ids)
		if told := other.told(); told != "" {
			w.t.Errorf("the other reports %s", told)
		}
		if all, err := other.db.Standing(w.t.Context()); err != nil || len(all) != 1 || all[0].Scope != "credentials:old" {
			w.t.Errorf("%+v, %v", all, err)
		}
	})
}

// A person's stop holds in every worker until a person ends it, and the workflows go on meanwhile.
func TestAPersonStopsSending(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		crews := []*crew{w.hire(w.mailer), w.hire(w.mailer)}
		if err := crews[0].db.StopBy(w.t.Context(), "someone", "wrong prices"); err != nil {
			w.t.Fatal(err)
		}
		for _, c := range crews {
			c.awaitIdle(worker.ClassPerson)
		}
		ids := w.enqueueMany(4)
		for _, id := range ids {
			w.awaitPendingSend(id)
		}
		if n := w.requests(sendAction); n != 0 {
			w.t.Errorf("%d requests", n)
		}
		w.explained(w.sources(), ids[0], "sending has stopped (person)", "waits for a worker", "SENDING HAS STOPPED", "wrong prices", `"by":"someone"`)
		if cleared, err := crews[1].db.Clear(w.t.Context()); err != nil || len(cleared) != 1 {
			w.t.Errorf("%+v, %v", cleared, err)
		}
		w.awaitSentOnce(ids)
	})
}

// awaitPendingSend waits until the workflow has asked for its mail.
func (w *world) awaitPendingSend(id string) {
	w.t.Helper()
	w.awaitStarted(id)
	testdb.Eventually(w.t, id+" has asked for its mail", func() bool {
		r, err := w.c.DescribeWorkflowExecution(w.t.Context(), id, "")
		return err == nil && len(r.GetPendingActivities()) == 1
	})
}

// hireStopped hires a worker that sends nothing, because a person has stopped it.
func (w *world) hireStopped() *crew {
	w.t.Helper()
	c := w.hire(w.mailer)
	if err := c.db.StopBy(w.t.Context(), "someone", "a test"); err != nil {
		w.t.Fatal(err)
	}
	c.awaitIdle(worker.ClassPerson)
	return c
}

// resume lets it send, and waits until it has sent one mail: what waited before it has gone out by then, or never will.
func (c *crew) resume() {
	c.w.t.Helper()
	if _, err := c.db.Clear(c.w.t.Context()); err != nil {
		c.w.t.Fatal(err)
	}
	enqueue(c.w.t, c.w.s, welcome("after"))
	c.w.result("after")
}

// A stop of mails holds up nothing else: a registration that comes while it lasts still prevents the reminder.
func TestAStopHoldsUpNoRegistration(t *testing.T) {
	t.Parallel()
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		c := w.hire(w.mailer)
		enqueue(w.t, w.s, paymentFailedRemind("payment", "1h"))
		testdb.Eventually(w.t, "the first mail", func() bool { return w.mails() == 1 })
		if err := c.db.StopBy(w.t.Context(), "someone", "a test"); err != nil {
			w.t.Fatal(err)
		}
		c.awaitIdle(worker.ClassPerson)
		enqueue(w.t, w.s, outbox.Message{ID: "card", EventType: "card_registered", Payload: map[string]any{
			"subscription_id": "sub_9", "payment_failed_id": "payment",
		}})
		if r := w.result("payment"); !r.Answered || w.mails() != 1 {
			w.t.Errorf("%+v; %d mails", r, w.mails())
		}
	})
}

// A registration that comes while a mail waits to be sent takes it back: nobody is asked for a card that is there.
func TestARegistrationWithdrawsAWaitingMail(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		c := w.hireStopped()
		enqueue(w.t, w.s, paymentFailedRemind("payment_failed_withdrawn", "1h"))
		w.awaitPendingSend("payment_failed_withdrawn")
		enqueue(w.t, w.s, outbox.Message{ID: "card", EventType: "card_registered", Payload: map[string]any{
			"subscription_id": "sub_9", "payment_failed_id": "payment_failed_withdrawn",
		}})
		r := w.result("payment_failed_withdrawn")
		if !r.Answered || len(r.Sends) != 1 || !r.Sends[0].Withdrawn {
			w.t.Errorf("%+v", r)
		}
		c.resume()
		if n := w.mails(); n != 1 {
			w.t.Errorf("%d mails", n)
		}
		store(w.t, "payment_failed_withdrawn", history(w.t, w.c, "payment_failed_withdrawn"))
	})
}

// A registration that comes while SES is at a mail: one that SES refuses is not tried again, and one that it accepts has gone out.
func TestARegistrationDuringASend(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachWorld(t, func(w *world) {
		for _, c := range []struct {
			id    string
			error *sesstandin.APIError
			mails int
		}{{"refused", &sesstandin.APIError{Code: "Throttling", Message: "Maximum sending rate exceeded.", Status: 400}, 0}, {"accepted", nil, 1}} {
			if _, err := w.standin.Inject(sesstandin.Fault{Match: c.id, Error: c.error, Delay: sesstandin.Duration(500 * time.Millisecond)}); err != nil {
				w.t.Fatal(err)
			}
			asked := w.requests(sendAction)
			enqueue(w.t, w.s, paymentFailedRemind(c.id, "1h"))
			testdb.Eventually(w.t, "SES is asked", func() bool { return w.requests(sendAction) > asked })
			enqueue(w.t, w.s, outbox.Message{ID: "card:" + c.id, EventType: "card_registered", Payload: map[string]any{
				"subscription_id": "sub_9", "payment_failed_id": c.id,
			}})
			r := w.result(c.id)
			if !r.Answered || r.Sends[0].Withdrawn != (c.mails == 0) || w.mailsByMessage()[c.id] != c.mails || len(r.Reminders) > 0 {
				w.t.Errorf("%s: %+v; mails %v", c.id, r, w.mailsByMessage())
			}
		}
	})
}

// A workflow that is cancelled while its mail waits sends nothing.
func TestACancelledWorkflowSendsNothing(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		c := w.hireStopped()
		enqueue(w.t, w.s, paymentFailedRemind("cancelled", "1h"))
		w.awaitPendingSend("cancelled")
		if err := w.c.CancelWorkflow(w.t.Context(), "cancelled", ""); err != nil {
			w.t.Fatal(err)
		}
		if err := w.c.GetWorkflow(w.t.Context(), "cancelled", "").Get(w.t.Context(), nil); !temporal.IsCanceledError(err) {
			w.t.Errorf("it ended with %v", err)
		}
		c.resume()
		if n := w.mailsByMessage()["cancelled"]; n != 0 {
			w.t.Errorf("%d mails", n)
		}
	})
}
