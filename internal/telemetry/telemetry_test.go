package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/oncepost/oncepost/internal/testotlp"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // a developer's own
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	goleak.VerifyTestMain(m)
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start starts with these variables, and a log.
func start(t *testing.T, env ...string) (*Tracing, *lines, error) {
	t.Helper()
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	log := &lines{}
	tracing, err := Start(t.Context(), Config{Service: "oncepost-test", Version: "v1", Logger: slog.New(slog.NewTextHandler(log, nil))})
	return tracing, log, err
}

func mustStart(t *testing.T, env ...string) (*Tracing, *lines) {
	t.Helper()
	tracing, log, err := start(t, env...)
	if err != nil {
		t.Fatal(err)
	}
	if tracing == nil {
		t.Fatal("off")
	}
	return tracing, log
}

// TestOffUnlessConfigured: no interceptor, no goroutine, no log, nothing of OpenTelemetry's own state touched.
func TestOffUnlessConfigured(t *testing.T) {
	goroutines, provider, handler := runtime.NumGoroutine(), otel.GetTracerProvider(), otel.GetErrorHandler()
	tracing, log, err := start(t)
	if tracing != nil || err != nil {
		t.Fatalf("%v, %v; want neither", tracing, err)
	}
	var options client.Options
	tracing.Client(&options)
	if len(options.Interceptors) != 0 {
		t.Error("a client has an interceptor")
	}
	if otel.GetTracerProvider() != provider || otel.GetErrorHandler() != handler {
		t.Error("OpenTelemetry's state has changed")
	}
	if n := runtime.NumGoroutine(); n != goroutines {
		t.Errorf("%d goroutines, and before %d", n, goroutines)
	}
	tracing.Stop()
	if log.String() != "" {
		t.Errorf("log: %s", log)
	}
}

// TestBadVariablesStopTheStart, and name themselves.
func TestBadVariablesStopTheStart(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_TRACES_SAMPLER": "sometimes", "OTEL_RESOURCE_ATTRIBUTES": "a", "OTEL_EXPORTER_OTLP_ENDPOINT": "collector",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := start(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", name, value)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want an error that names the variable", err)
			}
		})
	}
}

// TestExport: over HTTP and gRPC, with the name of the service, all that has ended before the stop.
func TestExport(t *testing.T) {
	for _, protocol := range []string{overHTTP, overGRPC} {
		for _, service := range []string{"oncepost-test", "own"} {
			t.Run(protocol+" "+service, func(t *testing.T) {
				collector := &testotlp.Collector{}
				env := []string{"OTEL_EXPORTER_OTLP_PROTOCOL", protocol, "OTEL_EXPORTER_OTLP_ENDPOINT", serve(t, collector, protocol)}
				if service == "own" {
					env = append(env, "OTEL_SERVICE_NAME", service)
				}
				tracing, log := mustStart(t, env...)
				_, s := tracing.provider.Tracer("test").Start(t.Context(), "a span")
				s.End()
				tracing.Stop()
				spans := collector.Spans("")
				if len(spans) != 1 || spans[0].Name != "a span" || spans[0].Service != service {
					t.Errorf("%+v", spans)
				}
				if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "traces are exported") || !strings.Contains(text, "127.0.0.1") {
					t.Errorf("log: %s", text)
				}
			})
		}
	}
}

// serve returns the URL of a collector.
func serve(t *testing.T, c *testotlp.Collector, protocol string) string {
	t.Helper()
	if protocol == overHTTP {
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		return server.URL
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// TestTheCollectorHangs: it takes requests and does not answer. Spans beyond what is kept are dropped, whoever ends one does not
// wait, and a stop breaks off what is in flight.
func TestTheCollectorHangs(t *testing.T) {
	leave := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-leave:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(leave) })
	before := goleak.IgnoreCurrent() // and the connections, which are the collector's to end
	connections := []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
	tracing, log := mustStart(t, "OTEL_EXPORTER_OTLP_ENDPOINT", server.URL, "OTEL_EXPORTER_OTLP_TIMEOUT", "600000", "OTEL_BSP_EXPORT_TIMEOUT", "600000")
	for range 10_000 { // 2048 are kept
		_, s := tracing.provider.Tracer("test").Start(t.Context(), "a span")
		s.End()
	}
	tracing.Stop() // would wait for ten minutes, and the test with it
	if err := goleak.Find(append(connections, before)...); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "the last spans were not exported in time") {
		t.Errorf("log: %s", log)
	}
}

// TestTheCollectorIsAway: one line says so, without the path, in which some vendors have a credential.
func TestTheCollectorIsAway(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	refusing := server.URL
	t.Cleanup(server.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{"gone": gone.URL, "refusing": refusing} {
		t.Run(name, func(t *testing.T) {
			tracing, log := mustStart(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url+"/se%20cret/of/ours", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
			for range 20 { // each is an export of its own
				_, s := tracing.provider.Tracer("test").Start(t.Context(), "a span")
				s.End()
			}
			tracing.Stop()
			text := log.String()
			if strings.Count(text, "spans are lost") != 1 {
				t.Errorf("want one line that says so: %s", text)
			}
			if strings.Contains(text, "cret") || strings.Contains(text, "ours") {
				t.Errorf("the path is shown: %s", text)
			}
		})
	}
}

// TestComplaintsComeOnceInAWhile.
func TestComplaintsComeOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		c := &complaints{logger: slog.New(slog.NewTextHandler(log, nil))}
		for range 3 * 12 { // each 5 s, for 3 minutes
			c.Handle(errors.New("away"))
			time.Sleep(5 * time.Second)
		}
		if text := log.String(); strings.Count(text, "\n") != 3 || strings.Count(text, "more_since_the_last_line=11") != 2 {
			t.Errorf("log: %s", text)
		}
	})
}

// TestStopWithAnEndedContext: the context of Start may end long before Stop, which still exports.
func TestStopWithAnEndedContext(t *testing.T) {
	collector := &testotlp.Collector{}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", serve(t, collector, overHTTP))
	ctx, cancel := context.WithCancel(t.Context())
	tracing, err := Start(ctx, Config{Service: "s", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, s := tracing.provider.Tracer("test").Start(ctx, "a span")
	cancel()
	s.End()
	tracing.Stop()
	if n := len(collector.Spans("")); n != 1 {
		t.Errorf("%d spans, want 1", n)
	}
}
