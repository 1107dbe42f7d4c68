package starter

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
)

// producerSpan puts the span that a row's headers name (traceparent and tracestate of W3C Trace Context) into ctx, as the parent
// of the start's. What cannot be read is left out, as the specification wants it: a trace is no reason to fail a message.
func producerSpan(ctx context.Context, headers []byte) context.Context {
	if headers == nil {
		return ctx
	}
	var names map[string]json.RawMessage
	if json.Unmarshal(headers, &names) != nil { // Start has refused what is no JSON
		return ctx
	}
	carrier := propagation.MapCarrier{}
	for _, name := range (propagation.TraceContext{}).Fields() {
		var value string
		if json.Unmarshal(names[name], &value) == nil { // neither missing, nor a number
			carrier[name] = value
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}
