package integration

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/telemetry"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testotlp"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/workflows"
)

// tracedWorld is a world without relay and worker, and a collector.
type tracedWorld struct {
	*world
	*testotlp.Collector
}

// eachTraced runs test in a world of its own on each database. Exports are prompt.
func eachTraced(t *testing.T, test func(w *tracedWorld)) {
	t.Helper()
	collector := &testotlp.Collector{}
	server := httptest.NewServer(collector)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "traces", 24*time.Hour)
		w := &world{t: t, s: s, addr: temporal.FrontendAddr(), namespace: ns, c: c}
		w.openSES()
		test(&tracedWorld{w, collector})
	})
}

// tracing makes a client as a process of oncepost does.
func (w *tracedWorld) tracing(service string, through ...grpc.UnaryClientInterceptor) client.Client {
	w.t.Helper()
	tracing, err := telemetry.Start(w.t.Context(), telemetry.Config{Service: service, Logger: slog.New(slog.DiscardHandler)})
	if err != nil || tracing == nil {
		w.t.Fatalf("tracing %v, %v", tracing, err)
	}
	w.t.Cleanup(tracing.Stop)
	options := client.Options{
		HostPort: w.addr, Namespace: w.namespace, Logger: silent(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(through...)}},
	}
	tracing.Client(&options)
	c, err := client.NewLazyClient(options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *tracedWorld) relay(c client.Client) {
	w.t.Helper()
	runRelay(w.t, w.s.DSN, c, w.namespace, starter.Config{})
}

func (w *tracedWorld) worker(c client.Client) (stop func()) {
	w.t.Helper()
	return w.hire(w.mailer, func(cfg *serve.Config) { cfg.Client = c }).stop
}

// post enqueues a message with the span of its producer, and returns both their IDs.
func (w *tracedWorld) post(m string, n int) (trace, span string) {
	w.t.Helper()
	trace, span = fmt.Sprintf("%032x", time.Now().UnixNano()), fmt.Sprintf("%016x", n+1)
	msg := welcome(m)
	if strings.HasPrefix(m, "payment") {
		msg = paymentFailed(m)
	}
	msg.Headers = map[string]string{"traceparent": "00-" + trace + "-" + span + "-01", "tracestate": "vendor=1", "tenant": "t"}
	enqueue(w.t, w.s, msg)
	return trace, span
}

// await waits until a trace has spans with these names, and returns all it has.
func (w *tracedWorld) await(trace string, names ...string) []testotlp.Span {
	w.t.Helper()
	slices.Sort(names)
	var spans []testotlp.Span
	testdb.Eventually(w.t, fmt.Sprintf("spans %q", names), func() bool {
		spans = w.Spans(trace)
		got := namesOf(spans)
		for _, name := range names {
			i := slices.Index(got, name)
			if i < 0 {
				return false
			}
			got = slices.Delete(got, i, i+1)
		}
		return true
	})
	if got := namesOf(spans); !slices.Equal(got, names) {
		w.t.Errorf("spans %q, want %q", got, names)
	}
	return spans
}

func namesOf(spans []testotlp.Span) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// chain holds the spans with these names to being each the child of the one before, and the first of the producer's.
func (w *tracedWorld) chain(spans []testotlp.Span, producer string, names ...string) {
	w.t.Helper()
	parent := producer
	for _, name := range names {
		i := slices.IndexFunc(spans, func(s testotlp.Span) bool { return s.Name == name && s.Parent == parent })
		if i < 0 {
			w.t.Fatalf("no span %s with the parent %s in %+v", name, parent, spans)
		}
		parent = spans[i].ID
	}
}

// oneMail are the spans of a message that is one mail.
func oneMail(eventType string) []string {
	return []string{"StartWorkflow:" + eventType, "RunWorkflow:" + eventType, "StartActivity:Send", "RunActivity:Send", "SES SendRawEmail"}
}

// TestOneTrace: from the producer through the row, the start, the workflow and the activity to SES, over three processes; and a
// message whose traceparent is none goes out as well, in a trace of its own.
func TestOneTrace(t *testing.T) {
	eachTraced(t, func(w *tracedWorld) {
		w.relay(w.tracing("oncepost-relay"))
		w.worker(w.tracing("oncepost-worker"))
		trace, producer := w.post("good", 1)
		w.result("good")
		spans := w.await(trace, oneMail("welcome")...)
		w.chain(spans, producer, oneMail("welcome")...)
		for _, s := range spans {
			want := "oncepost-worker"
			if s.Name == "StartWorkflow:welcome" {
				want = "oncepost-relay"
			}
			if s.Service != want || s.State != "vendor=1" || s.Status.GetCode() != 0 {
				w.t.Errorf("%+v; want the service %s, the producer's tracestate and no error", s, want)
			}
		}

		bad := welcome("bad")
		bad.Headers = map[string]string{"traceparent": "00-" + trace + "-nonsense-01"}
		enqueue(w.t, w.s, bad)
		w.result("bad")
		if n := w.mails(); n != 2 {
			w.t.Errorf("%d mails", n)
		}
		testdb.Eventually(w.t, "a trace of its own", func() bool {
			for _, s := range w.Spans("") {
				if s.Name == "StartWorkflow:welcome" && s.Attributes["temporalWorkflowID"] == "bad" {
					return s.Parent == "" && len(w.Spans(s.Trace)) == len(oneMail("welcome"))
				}
			}
			return false
		})
		w.noAddresses()
	})
}

// TestTracesOfWhatFails: SES refuses, and an address that it cannot take; the spans tell the classes.
func TestTracesOfWhatFails(t *testing.T) {
	eachTraced(t, func(w *tracedWorld) {
		w.relay(w.tracing("oncepost-relay"))
		w.worker(w.tracing("oncepost-worker"))
		w.fault("reject", 1)
		trace, _ := w.post("refused", 1)
		spans := w.await(trace, oneMail("welcome")...)
		for name, kind := range map[string]string{"SES SendRawEmail": "rejected", "RunActivity:Send": activities.TypeRejected, "RunWorkflow:welcome": activities.TypeRejected} {
			i := slices.IndexFunc(spans, func(s testotlp.Span) bool { return s.Name == name })
			if s := spans[i]; s.Attributes["error.type"] != kind || s.Status.GetMessage() != "" || s.Events != 0 {
				w.t.Errorf("%+v, want the class %s and no text", s, kind)
			}
		}
		broken := welcome("broken")
		broken.Payload = map[string]string{"company_id": "c_1", "company_name": "Example", "email": "pérson@example.com"}
		broken.Headers = map[string]string{"traceparent": "00-" + trace + "-00000000000000aa-01"}
		enqueue(w.t, w.s, broken)
		testdb.Eventually(w.t, "the end of the broken one", func() bool {
			return slices.ContainsFunc(w.Spans(trace), func(s testotlp.Span) bool {
				return s.Name == "RunWorkflow:welcome" && s.Attributes["temporalWorkflowID"] == "broken" && s.Attributes["error.type"] != ""
			})
		})
		w.noAddresses()
	})
}

func (w *tracedWorld) noAddresses() {
	w.t.Helper()
	for _, text := range w.Texts() {
		for _, never := range []string{"@", "Example", "c_1", "company"} {
			if strings.Contains(text, never) {
				w.t.Errorf("%q was exported: %s", never, text)
			}
		}
	}
}

// TestATracedStartIsRetried: its answer is lost, so Temporal is asked twice. There are two spans of starts, one workflow, one mail.
func TestATracedStartIsRetried(t *testing.T) {
	eachTraced(t, func(w *tracedWorld) {
		var lost atomic.Bool
		lose := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := next(ctx, method, req, reply, cc, opts...)
			if _, ok := req.(*workflowservice.StartWorkflowExecutionRequest); ok && err == nil && lost.CompareAndSwap(false, true) {
				return status.Error(codes.FailedPrecondition, "the answer is lost") // the SDK does not retry this by itself
			}
			return err
		}
		w.relay(w.tracing("oncepost-relay", lose))
		w.worker(w.tracing("oncepost-worker"))
		trace, producer := w.post("again", 1)
		w.result("again")
		spans := w.await(trace, append(oneMail("welcome"), "StartWorkflow:welcome")...)
		w.chain(spans, producer, oneMail("welcome")...)
		var failed, already int
		for _, s := range spans {
			if s.Name == "StartWorkflow:welcome" && s.Attributes["error.type"] != "" {
				failed++
			}
			if s.Attributes[telemetry.AlreadyStarted] != "" {
				already++
			}
		}
		if failed != 1 || already != 1 {
			w.t.Errorf("%d starts failed and %d found it started, want one each: %+v", failed, already, spans)
		}
		countWorkflows(w.t, w.c, 1, "WorkflowId = 'again'")
		if n := w.mails(); n != 1 {
			w.t.Errorf("%d mails", n)
		}
	})
}

// TestATraceHeaderThatCannotBeRead fails no workflow: it may come from another SDK, or a person.
func TestATraceHeaderThatCannotBeRead(t *testing.T) {
	eachTraced(t, func(w *tracedWorld) {
		spoil := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if r, ok := req.(*workflowservice.StartWorkflowExecutionRequest); ok {
				for _, p := range r.GetHeader().GetFields() {
					p.Data = []byte(`{"traceparent":"nonsense"}`)
				}
			}
			return next(ctx, method, req, reply, cc, opts...)
		}
		w.relay(w.tracing("oncepost-relay", spoil))
		w.worker(w.tracing("oncepost-worker"))
		w.post("spoiled", 1)
		if r := w.result("spoiled"); r.Sends[0].SESMessageID == "" || w.mails() != 1 {
			w.t.Errorf("%+v, %d mails", r, w.mails())
		}
	})
}

// TestWorkersWithAndWithoutTraces take over from each other in the middle of a workflow, and the span of a run is one, with its
// children from before and after.
func TestWorkersWithAndWithoutTraces(t *testing.T) {
	eachTraced(t, func(w *tracedWorld) {
		traced, plain := w.tracing("oncepost-worker"), w.c
		w.relay(w.tracing("oncepost-relay"))
		for i, c := range []struct {
			before, after client.Client
			runs          int // spans of the run
		}{{traced, plain, 0}, {plain, traced, 1}, {traced, traced, 1}} {
			id := fmt.Sprintf("payment-%d", i)
			w.fault("lost-answer", 1)
			stop := w.worker(c.before)
			trace, producer := w.post(id, i)
			w.awaitParked(id)
			stop()
			stop = w.worker(c.after)
			w.resolve(id, workflows.DecisionResend)
			if r := w.result(id); r.Sends[0].SESMessageID == "" {
				w.t.Errorf("%s: %+v", id, r)
			}
			for range 2 { // a query replays what the next worker has not in its cache
				stop()
				stop = w.worker(c.after)
				if _, err := w.c.QueryWorkflow(w.t.Context(), id, "", "__temporal_workflow_metadata"); err != nil {
					w.t.Fatal(err)
				}
			}
			stop()
			w.onwards(trace, producer, c.before == traced, c.after == traced, c.runs)
		}
	})
}

func (w *tracedWorld) onwards(trace, producer string, before, after bool, runs int) {
	w.t.Helper()
	sends := 0
	for _, traced := range []bool{before, after} {
		if traced {
			sends++
		}
	}
	count := func(name string) (n int) {
		for _, s := range w.Spans(trace) {
			if s.Name == name {
				n++
			}
		}
		return n
	}
	const run = "RunWorkflow:payment_failed"
	testdb.Eventually(w.t, fmt.Sprintf("%d spans of sends and %d of runs", sends, runs), func() bool {
		return count("SES SendRawEmail") == sends && count(run) == runs
	})
	if n := count(run); n != runs {
		w.t.Errorf("%d spans of one run, want %d", n, runs)
	}
	if runs == 0 || !before {
		return
	}
	spans := w.Spans(trace)
	w.chain(spans, producer, oneMail("payment_failed")...)
	known := map[string]bool{producer: true}
	for _, s := range spans {
		known[s.ID] = true
	}
	for _, s := range spans {
		if !known[s.Parent] {
			w.t.Errorf("%s has a parent that was never exported", s.Name)
		}
	}
}
