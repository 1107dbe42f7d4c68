// Package testotlp is a collector for tests: it takes what OpenTelemetry's exporters send (OTLP, over HTTP and gRPC) and keeps the
// spans. It is for tests alone.
package testotlp

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"sync"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Span is one that was exported.
type Span struct {
	Trace, ID, Parent, State string // hex; Parent is "" for the root of a trace
	Name, Service            string
	Attributes               map[string]string
	Kind                     tracepb.Span_SpanKind
	Status                   *tracepb.Status
	Events                   int
}

// Collector implements http.Handler, and OTLP's gRPC service.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans []Span
	texts []string // whole requests, as JSON
}

// ServeHTTP takes an export.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	if err == nil && r.URL.Path != "/v1/traces" {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.take(&in)
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer is success
}

// Export implements OTLP's gRPC service.
func (c *Collector) Export(_ context.Context, in *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.take(in)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func (c *Collector) take(in *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, protojson.Format(in))
	for _, of := range in.GetResourceSpans() {
		service := values(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
					Parent: hex.EncodeToString(s.GetParentSpanId()), State: s.GetTraceState(), Name: s.GetName(), Service: service,
					Attributes: values(s.GetAttributes()), Kind: s.GetKind(), Status: s.GetStatus(), Events: len(s.GetEvents()),
				})
			}
		}
	}
}

func values(all []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		if v, ok := a.GetValue().GetValue().(*commonpb.AnyValue_StringValue); ok {
			m[a.GetKey()] = v.StringValue
		} else {
			m[a.GetKey()] = protojson.Format(a.GetValue())
		}
	}
	return m
}

// Spans returns those of a trace, in the order of their export; with "" those of all.
func (c *Collector) Spans(trace string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s Span) bool { return trace != "" && s.Trace != trace })
}

// Texts returns all that was sent, one text for each export.
func (c *Collector) Texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.texts)
}
