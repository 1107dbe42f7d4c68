package integration

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
)

// queue describes the sends' task queue.
func (w *world) queue() *workflowservice.DescribeTaskQueueResponse {
	w.t.Helper()
	r, err := w.c.WorkflowService().DescribeTaskQueue(w.t.Context(), &workflowservice.DescribeTaskQueueRequest{
		Namespace: w.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: schemas.SendTaskQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportConfig: true, ReportStats: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// limit is the queue's rate limit; negative where there is none.
func (w *world) limit() float64 {
	w.t.Helper()
	if l := w.queue().GetConfig().GetQueueRateLimit().GetRateLimit(); l != nil {
		return float64(l.GetRequestsPerSecond())
	}
	return -1
}

func (w *world) awaitLimit(want float64) {
	w.t.Helper()
	testdb.Eventually(w.t, fmt.Sprintf("a limit of %v/s", want), func() bool { return math.Abs(w.limit()-want) < 0.01 })
}

func (w *world) allow(perSecond float64) {
	w.t.Helper()
	w.standin.ClearFaults()
	if _, err := w.standin.Inject(sesstandin.Fault{MaxPerSecond: perSecond}); err != nil {
		w.t.Fatal(err)
	}
}

func rated(r serve.Rate) func(*serve.Config) {
	return func(c *serve.Config) { c.Rate, c.RateEvery = r, 200*time.Millisecond }
}

// TestTheAccountsRate: scenario 21. The queue's limit follows the account's rate, so that few mails are throttled, and those are
// sent all the same.
func TestTheAccountsRate(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		w.allow(14)
		crews := []*crew{w.hire(w.mailer, rated(serve.Rate{})), w.hire(w.mailer, rated(serve.Rate{}))}
		w.awaitLimit(14 * 0.9)
		began := time.Now()
		w.awaitSentOnce(w.enqueueMany(200))
		if took := time.Since(began); took < 200/14*time.Second {
			w.t.Errorf("sent within %s", took)
		}
		if n := w.requests(sendAction); n > 300 { // a busy machine bunches them; with no limit each is throttled over and over
			w.t.Errorf("%d requests for 200 mails", n)
		}
		w.allow(20)
		w.awaitLimit(18)
		for _, c := range crews {
			if told := c.told(); told != "" {
				w.t.Errorf("reports: %s", told)
			}
		}
	})
}

// A rate that is given holds whatever the account has, and 0 is none. A share is a share.
func TestAGivenRate(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		w.allow(14)
		three, none := 3.0, 0.0
		for _, c := range []struct {
			rate serve.Rate
			want float64
		}{{serve.Rate{Fixed: &three}, 3}, {serve.Rate{Share: 0.5}, 7}, {serve.Rate{Fixed: &none}, -1}} {
			crew := w.hire(w.mailer, rated(c.rate))
			w.awaitLimit(c.want)
			crew.stop()
		}
	})
}

// Of workers that want different rates the last to start has its way, and they do not undo each other's from then on.
func TestDifferentRates(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		three, five := 3.0, 5.0
		w.hire(w.mailer, rated(serve.Rate{Fixed: &three}))
		w.awaitLimit(3)
		w.hire(w.mailer, rated(serve.Rate{Fixed: &five}))
		w.awaitLimit(5)
		for looks := w.requests("GetSendQuota"); w.requests("GetSendQuota") < looks+6; time.Sleep(10 * time.Millisecond) {
			if l := w.limit(); l != 5 {
				w.t.Fatalf("limit %v", l)
			}
		}
	})
}

// A rate that Temporal does not take is said once, and set once Temporal does.
func TestARefusedRate(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		var refusals atomic.Int64
		var open atomic.Bool
		refuse := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if _, ok := req.(*workflowservice.UpdateTaskQueueConfigRequest); ok && !open.Load() {
				refusals.Add(1)
				return status.Error(codes.PermissionDenied, "not for you")
			}
			return next(ctx, method, req, reply, cc, opts...)
		}
		three := 3.0
		c := w.hire(w.mailer, rated(serve.Rate{Fixed: &three}), func(c *serve.Config) { c.Client = dial(w.t, w.addr, w.namespace, refuse) })
		testdb.Eventually(w.t, "it is tried again", func() bool { return refusals.Load() >= 3 })
		if n := strings.Count(c.said.String(), "rate of sends cannot be set"); n != 1 {
			w.t.Errorf("said %d times", n)
		}
		open.Store(true)
		w.awaitLimit(3)
	})
}

// Where the quota may not be read, that is said once, and mails go out.
func TestNoRightToReadTheRate(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		if _, err := w.standin.Inject(sesstandin.Fault{Action: "GetSendQuota", Error: &sesstandin.APIError{Code: "AccessDenied", Status: 403}}); err != nil {
			w.t.Fatal(err)
		}
		c := w.hire(w.mailer, rated(serve.Rate{}))
		w.awaitSentOnce(w.enqueueMany(4))
		testdb.Eventually(w.t, "it is asked again", func() bool { return w.requests("GetSendQuota") >= 3 })
		if n := strings.Count(c.said.String(), "quota cannot be read"); n != 1 || w.limit() >= 0 {
			w.t.Errorf("said %d times, limit %v", n, w.limit())
		}
	})
}

// A mail of priority 1 overtakes a thousand of priority 5 that wait for the rate: the send has its workflow's priority. It counts from
// when it is in the queue; how long that takes after the commit is the relay's and the workflow's matter, and the machine's.
func TestAnUrgentMailOvertakes(t *testing.T) {
	const partitions = 1 // with more it is not exact: docs/sending.md
	temporal := startTemporal(t, devtemporal.Options{SearchAttributes: attributes, DynamicConfig: map[string]any{
		"matching.numTaskqueueReadPartitions": partitions, "matching.numTaskqueueWritePartitions": partitions,
	}})
	s := testdb.NewSchema(t, testdb.Flavours()[0]) // the database has no part in it
	migrateUp(t, s)
	ns, c := newNamespace(t, temporal, s, "urgent", 24*time.Hour)
	w := &world{t: t, s: s, namespace: ns, c: c}
	w.openSES()
	runRelay(t, s.DSN, c, ns, starter.Config{})
	rate := 50.0
	crew := w.hire(w.mailer, rated(serve.Rate{Fixed: &rate}), func(c *serve.Config) { c.MaxSends = 100 })
	if err := crew.db.StopBy(t.Context(), "Ann", "to let mails wait"); err != nil {
		t.Fatal(err)
	}
	crew.awaitIdle("person")
	var all []outbox.Message
	for i := range 1000 {
		m := welcome(fmt.Sprintf("plain:%04d", i))
		m.Priority = 5
		all = append(all, m)
	}
	enqueue(t, s, all...)
	testdb.Eventually(t, "a thousand mails wait", func() bool { return w.queue().GetStats().GetApproximateBacklogCount() >= 1000 })
	if _, err := crew.db.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	testdb.Eventually(t, "some are sent", func() bool { return w.mails() >= 50 })
	urgent := welcome("urgent")
	urgent.Priority = 1
	before := w.mails()
	committed := time.Now()
	enqueue(t, s, urgent)
	w.result("urgent")
	place, fromCommit := w.place("urgent", w.scheduled("urgent")), w.place("urgent", committed)
	t.Logf("number %d of the mails sent after it was in the queue, %d of those after its commit", place, fromCommit)
	if place < 1 || place > 50 || before > 500 {
		t.Errorf("%d were sent before its commit; it is number %d since it was in the queue, want 50 at most", before, place)
	}
}

// place is the message's among the mails that were received after a time; 0 where it was not.
func (w *world) place(id string, after time.Time) int {
	w.t.Helper()
	mails := slices.DeleteFunc(w.standin.Mails(), func(m sesstandin.Mail) bool { return m.ReceivedAt.Before(after) })
	return 1 + slices.IndexFunc(mails, func(m sesstandin.Mail) bool { return m.MessageID == id })
}

// scheduled is when the workflow's send was put into the queue.
func (w *world) scheduled(id string) time.Time {
	w.t.Helper()
	for events := w.c.GetWorkflowHistory(w.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if e.GetActivityTaskScheduledEventAttributes() != nil {
			return e.GetEventTime().AsTime()
		}
	}
	w.t.Fatal(id + " has asked for no mail")
	return time.Time{}
}
