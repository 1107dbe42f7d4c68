package ses

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncepost/oncepost/activities"
)

// startSpan begins the span of a request, where the attempt that makes it has one; else it costs nothing. AWS gets nothing of it.
func startSpan(ctx context.Context) (context.Context, trace.Span) {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("github.com/oncepost/oncepost/internal/ses")
	return tracer.Start(ctx, "SES SendRawEmail", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("rpc.system", "aws-api"), attribute.String("rpc.service", "SES"), attribute.String("rpc.method", "SendRawEmail")))
}

// endSpan says what came of the request. The texts are left out: classes are few, and hold no address.
func endSpan(span trace.Span, a activities.Answer) {
	span.SetAttributes(attribute.String("oncepost.verdict", a.Verdict.String()))
	if a.Verdict != activities.VerdictSent {
		span.SetAttributes(attribute.String("error.type", a.Class))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
