// Package telemetry exports traces: the producer's traceparent goes on through the start of the workflow, the workflow, its
// activities and the request to SES. It is set up by OpenTelemetry's own environment variables, and off unless they are there.
//
// What is in a span is decided in span.go: names, IDs and classes of errors, never an address, a payload or the text of an
// error. Metrics are not its job.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// Config of Start.
type Config struct {
	// Service is service.name where OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES give none. Required.
	Service string
	// Version is service.version, under the same condition. Default: none.
	Version string
	// Logger. Required.
	Logger *slog.Logger
}

// Tracing exports traces until Stop. A nil *Tracing is one that is off: its methods do nothing.
type Tracing struct {
	provider    *sdktrace.TracerProvider
	exporter    sdktrace.SpanExporter
	interceptor interceptor.Interceptor
	logger      *slog.Logger
}

// Start reads the environment. It returns nil where nothing is configured, and an error that names the variable where one makes
// no sense. It does not connect: a collector may be away at the start, and later.
func Start(ctx context.Context, cfg Config) (*Tracing, error) {
	s, err := read(os.Getenv)
	if s == nil || err != nil {
		return nil, err
	}
	describes, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(cfg.attributes()...),
		resource.WithFromEnv()) // the last wins
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	var faults []error // OpenTelemetry reports them to a handler of the whole process, and goes on with defaults
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { faults = append(faults, err) }))
	otel.SetLogger(logr.FromSlogHandler(cfg.Logger.Handler()))
	exporter, err := s.exporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_…: %w", err)
	}
	// The sampler too is as the environment says; spans for which there is no room are dropped, nobody waits.
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(describes), sdktrace.WithIDGenerator(ids{}))
	if err := errors.Join(faults...); err != nil {
		return nil, errors.Join(fmt.Errorf("OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG: %w", err), exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(&complaints{logger: cfg.Logger, hidden: s.path})
	provider.RegisterSpanProcessor(sdktrace.NewBatchSpanProcessor(exporter))
	cfg.Logger.Info("traces are exported", "to", s.shown(), "protocol", s.protocol)
	return &Tracing{provider: provider, exporter: exporter, interceptor: newInterceptor(provider), logger: cfg.Logger}, nil
}

func (c Config) attributes() []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("service.name", c.Service)}
	if c.Version != "" {
		all = append(all, attribute.String("service.version", c.Version))
	}
	return all
}

// Client lets a Temporal client, and the workers made from it, trace.
func (t *Tracing) Client(o *client.Options) {
	if t != nil {
		o.Interceptors = append(o.Interceptors, t.interceptor)
	}
}

// flushTime bounds Stop: what a collector has not taken by then is dropped.
const flushTime = 5 * time.Second

// Stop exports what has ended by now, within 5 s. Spans that end later are dropped.
func (t *Tracing) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err == nil {
		return
	}
	t.logger.Warn("the last spans were not exported in time, and are dropped", "after", flushTime)
	_ = t.exporter.Shutdown(ctx) // breaks off the export in flight; that ctx has ended is known
}

// complaints logs what OpenTelemetry has to say, once in a while: a collector that is away fails every few seconds.
type complaints struct {
	logger *slog.Logger
	hidden string // the endpoint's path, which may be a credential

	mu    sync.Mutex
	last  time.Time
	since int // not logged since then
}

const complainEvery = time.Minute

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && time.Since(c.last) < complainEvery {
		c.since++
		return
	}
	c.logger.Warn("spans are lost; nothing else waits for them", "error", without(err, c.hidden), "more_since_the_last_line", c.since)
	c.last, c.since = time.Now(), 0
}
