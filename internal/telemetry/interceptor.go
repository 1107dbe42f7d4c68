package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"
)

// scope names the origin of the spans.
const scope = "github.com/oncepost/oncepost"

// newInterceptor is Temporal's own for OpenTelemetry, with spans that say no more than they may, and with one span for a run,
// however often the run is replayed.
func newInterceptor(provider trace.TracerProvider) interceptor.Interceptor {
	return runs{interceptor.NewTracingInterceptor(newTracer(provider.Tracer(scope)))}
}

// runs notes that runs have come to their end.
type runs struct{ interceptor.Interceptor }

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (r runs) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return r.Interceptor.InterceptWorkflow(ctx, &run{interceptor.WorkflowInboundInterceptorBase{Next: next}})
}

type run struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor. It does not get to the end where the run leaves the worker's
// cache, and comes there in a replay when somebody queries a closed workflow: neither is the end of the run.
func (r *run) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := r.Next.ExecuteWorkflow(ctx, in)
	if s, ok := opentelemetry.SpanFromWorkflowContext(ctx); ok && !workflow.IsReplaying(ctx) {
		if s, ok := s.(*span); ok {
			s.withheld = false
		}
	}
	return result, err
}

// tracer is contrib/opentelemetry's, which hands the key of a span to nobody: hence one for each span.
type tracer struct {
	interceptor.Tracer
	tracer trace.Tracer
}

func newTracer(t trace.Tracer) interceptor.Tracer { return tracer{contrib(t, ""), t} }

// runOperation is what the SDK calls the span of a run.
const runOperation = "RunWorkflow"

// StartSpan implements interceptor.Tracer.
func (t tracer) StartSpan(o *interceptor.TracerStartSpanOptions) (interceptor.TracerSpan, error) {
	if o.Operation != runOperation {
		return t.Tracer.StartSpan(o)
	}
	return contrib(t.tracer, o.IdempotencyKey).StartSpan(o)
}

// contrib returns a tracer of common spans, or with a key one of the span of a run.
func contrib(t trace.Tracer, key string) interceptor.Tracer {
	made, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer: t, TextMapPropagator: propagation.TraceContext{}, DisableBaggage: true,
		// Those would appear anew with each replay, or are made by oncepost's own watches.
		DisableUpdateTracing: true, DisableQueryTracing: true,
		AllowInvalidParentSpans: true, // a header that cannot be read must fail no workflow
		SpanStarter: func(ctx context.Context, t trace.Tracer, name string, o ...trace.SpanStartOption) trace.Span {
			_, s := t.Start(withKey(ctx, key), name, o...)
			return &span{Span: s, withheld: key != ""}
		},
	})
	if err != nil { // NewTracer has no way to fail (contrib/opentelemetry v0.8.1), and its type says it may
		panic(err)
	}
	return made
}

// GetLogger implements interceptor.Tracer: the logs of workflows and activities name their trace.
func (tracer) GetLogger(l log.Logger, ref interceptor.TracerSpanRef) log.Logger {
	s, ok := ref.(interface{ SpanContext() trace.SpanContext })
	if !ok {
		return l
	}
	return log.With(l, "trace_id", s.SpanContext().TraceID(), "span_id", s.SpanContext().SpanID())
}
