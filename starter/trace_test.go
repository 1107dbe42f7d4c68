package starter

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// TestProducerSpan: what the headers name, or nothing; a trace never fails a message.
func TestProducerSpan(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		name, headers string
		trace, state  string // "": none
	}{
		{"both", `{"tenant":"a","traceparent":"` + parent + `","tracestate":"vendor=1,other=2"}`, "0af7651916cd43dd8448eb211c80319c", "vendor=1,other=2"},
		{"no tracestate", `{"traceparent":"` + parent + `"}`, "0af7651916cd43dd8448eb211c80319c", ""},
		{"a bad tracestate", `{"traceparent":"` + parent + `","tracestate":"===,"}`, "0af7651916cd43dd8448eb211c80319c", ""},
		{"a tracestate that is no text", `{"traceparent":"` + parent + `","tracestate":1}`, "0af7651916cd43dd8448eb211c80319c", ""},
		{"a later version", `{"traceparent":"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more"}`, "0af7651916cd43dd8448eb211c80319c", ""},
		{"no headers", ``, "", ""},
		{"other headers", `{"tenant":"a"}`, "", ""},
		{"tracestate alone", `{"tracestate":"vendor=1"}`, "", ""},
		{"empty", `{"traceparent":""}`, "", ""},
		{"not a traceparent", `{"traceparent":"0af7651916cd43dd8448eb211c80319c"}`, "", ""},
		{"capitals", `{"traceparent":"00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01"}`, "", ""},
		{"no trace", `{"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01"}`, "", ""},
		{"no span", `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"}`, "", ""},
		{"no version", `{"traceparent":"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`, "", ""},
		{"no text", `{"traceparent":1}`, "", ""},
		{"null", `{"traceparent":null}`, "", ""},
		{"deep", `{"traceparent":{"traceparent":"` + parent + `"}}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var headers []byte
			if c.headers != "" {
				headers = []byte(c.headers)
			}
			s := trace.SpanContextFromContext(producerSpan(t.Context(), headers))
			if s.IsValid() != (c.trace != "") || s.IsValid() && (s.TraceID().String() != c.trace || s.SpanID().String() != "b7ad6b7169203331" ||
				!s.IsSampled() || !s.IsRemote()) || s.TraceState().String() != c.state {
				t.Errorf("trace %s, span %s, state %q; want %s, %q", s.TraceID(), s.SpanID(), s.TraceState(), c.trace, c.state)
			}
		})
	}
}
