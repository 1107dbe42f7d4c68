package telemetry

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// span keeps the texts of errors to itself: users' own activities, and Temporal's answers, may have an address or a payload in
// them. What kind of error it was is told.
type span struct {
	trace.Span
	withheld bool // a run that has not come to its end: nothing is exported of it yet
	fine     bool // its error is none
}

// AlreadyStarted is the attribute of a start that Temporal refused because the workflow ID is taken: as a rule a start that was
// tried twice, which is no error.
const AlreadyStarted = "oncepost.already_started"

// RecordError implements trace.Span. The interceptor calls it with each outcome.
func (s *span) RecordError(err error, _ ...trace.EventOption) {
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	var anew *workflow.ContinueAsNewError
	switch {
	case err == nil:
	case errors.As(err, &already):
		s.fine = true
		s.SetAttributes(attribute.Bool(AlreadyStarted, true))
	case errors.As(err, &anew): // a way for a run to end well
		s.fine = true
	default:
		s.SetAttributes(attribute.String("error.type", class(err)))
	}
}

// SetStatus implements trace.Span. It comes after RecordError, and leaves the text out.
func (s *span) SetStatus(c codes.Code, _ string) {
	if !s.fine {
		s.Span.SetStatus(c, "")
	}
}

// End implements trace.Span.
func (s *span) End(o ...trace.SpanEndOption) {
	if !s.withheld {
		s.Span.End(o...)
	}
}

// class is the kind of an error: the type that an activity or a workflow has given it, or the Go type of the innermost.
func class(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() != "" {
		return app.Type()
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}
