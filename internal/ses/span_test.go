package ses

import (
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncepost/oncepost/activities"
)

// TestSpan: a request has a span where the attempt has one, and classes in it but no text.
func TestSpan(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	attempt, parent := provider.Tracer("test").Start(t.Context(), "attempt")
	for _, a := range []activities.Answer{
		{Verdict: activities.VerdictSent, ProviderID: "id"},
		unknown("no_answer", "text of someone@example.com"),
	} {
		_, s := startSpan(attempt)
		endSpan(s, a)
		spans := kept.GetSpans()
		kept.Reset()
		if len(spans) != 1 || spans[0].Name != "SES SendRawEmail" || spans[0].Parent.SpanID() != parent.SpanContext().SpanID() ||
			spans[0].SpanKind != trace.SpanKindClient {
			t.Fatalf("%+v", spans)
		}
		got := map[string]string{}
		for _, kv := range spans[0].Attributes {
			got[string(kv.Key)] = kv.Value.AsString()
		}
		wantCode := codes.Error
		if a.Verdict == activities.VerdictSent {
			wantCode = codes.Unset
		}
		if got["oncepost.verdict"] != a.Verdict.String() || got["error.type"] != a.Class || got["rpc.method"] != "SendRawEmail" ||
			spans[0].Status.Code != wantCode || spans[0].Status.Description != "" {
			t.Errorf("%+v: attributes %v, status %+v", a, got, spans[0].Status)
		}
	}
	if ctx, s := startSpan(t.Context()); s.IsRecording() || trace.SpanContextFromContext(ctx).IsValid() {
		t.Error("a span without an attempt that is traced")
	}
}
