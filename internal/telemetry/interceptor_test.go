package telemetry

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/workflows"
)

// newProvider is one whose spans are kept in memory, as soon as they end.
func newProvider() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithIDGenerator(ids{})), kept
}

// TestStoredHistoriesReplayTraced: runs that were begun without traces go on with them, and no replay makes a span.
func TestStoredHistoriesReplayTraced(t *testing.T) {
	provider, kept := newProvider()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: []interceptor.WorkerInterceptor{newInterceptor(provider)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range workflows.Builtin().Types() {
		r.RegisterWorkflowWithOptions(typ.Workflow, workflow.RegisterOptions{Name: typ.Name})
	}
	files, err := filepath.Glob("../../workflows/testdata/histories/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("stored histories: %v, %d found", err, len(files))
	}
	for _, file := range files {
		if err := r.ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	for _, s := range kept.GetSpans() {
		t.Errorf("a replay has made the span %s", s.Name)
	}
}

// TestTheSpanOfARun has one ID however often it is begun, another one than any other run's, and is exported at the run's end only.
func TestTheSpanOfARun(t *testing.T) {
	provider, kept := newProvider()
	tr := newTracer(provider.Tracer(scope))
	begin := func(key string) interceptor.TracerSpan {
		s, err := tr.StartSpan(&interceptor.TracerStartSpanOptions{Operation: runOperation, Name: "x", FromHeader: true, IdempotencyKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	header := func(s interceptor.TracerSpan) string {
		m, err := tr.MarshalSpan(s)
		if err != nil || m["traceparent"] == "" {
			t.Fatalf("%v, %v", m, err)
		}
		return m["traceparent"]
	}
	first, again, other := begin("a"), begin("a"), begin("b")
	if header(first) != header(again) || header(first) == header(other) {
		t.Errorf("%s, again %s, another run's %s", header(first), header(again), header(other))
	}
	for _, s := range []interceptor.TracerSpan{first, again, other} {
		s.Finish(&interceptor.TracerFinishSpanOptions{})
	}
	if n := len(kept.GetSpans()); n != 0 {
		t.Errorf("%d spans of runs that have not ended", n)
	}
}

// TestErrorsKeepTheirTexts: their kind is exported, and what is no error is none.
func TestErrorsKeepTheirTexts(t *testing.T) {
	const secret = "someone@example.com"
	inner := temporal.NewNonRetryableApplicationError(secret, "invalid_payload", nil)
	for _, c := range []struct {
		name, kind string
		err        error
		code       codes.Code
	}{
		{"success", "", nil, codes.Unset},
		{"application", "invalid_payload", inner, codes.Error},
		{"wrapped", "invalid_payload", fmt.Errorf("%s: %w", secret, inner), codes.Error},
		{"without a type", "*errors.errorString", fmt.Errorf("%s: %w", secret, errors.New(secret)), codes.Error},
		{"Temporal's", "*serviceerror.Unavailable", serviceerror.NewUnavailable(secret), codes.Error},
		{"already started", "", serviceerror.NewWorkflowExecutionAlreadyStarted(secret, "", ""), codes.Unset},
		{"anew", "", &workflow.ContinueAsNewError{}, codes.Unset},
	} {
		t.Run(c.name, func(t *testing.T) {
			provider, kept := newProvider()
			s, err := newTracer(provider.Tracer(scope)).StartSpan(&interceptor.TracerStartSpanOptions{Operation: "RunActivity", Name: "x"})
			if err != nil {
				t.Fatal(err)
			}
			s.Finish(&interceptor.TracerFinishSpanOptions{Error: c.err})
			spans := kept.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans", len(spans))
			}
			kind, already := "", false
			for _, a := range spans[0].Attributes {
				switch a.Key {
				case "error.type":
					kind = a.Value.AsString()
				case AlreadyStarted:
					already = true
				}
			}
			if kind != c.kind || spans[0].Status.Code != c.code || spans[0].Status.Description != "" || len(spans[0].Events) != 0 ||
				already != (c.name == "already started") {
				t.Errorf("kind %q, already %v, status %+v, events %v", kind, already, spans[0].Status, spans[0].Events)
			}
		})
	}
}
