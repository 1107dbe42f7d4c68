package starter

import (
	"context"
	"errors"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// rule maps one kind of Temporal's errors to a class. The first that fits counts.
type rule struct {
	code  codes.Code
	texts []string // any of them, or none for all
	class Class
	over  bool
	hint  string
}

// rules is the one table of what a failed start means. Texts are those of Temporal server 1.32 and grpc-go 1.83.
var rules = []rule{
	// A request that is too large looks like overload; it will never be smaller.
	{code: codes.ResourceExhausted, texts: []string{"larger than max", "exceeds size limit", "exceeds limit"}, class: Never},
	{code: codes.ResourceExhausted, class: Away, over: true},
	{
		code: codes.InvalidArgument, texts: []string{"search attribute", "SearchAttribute"}, class: Misconfigured,
		hint: "register the search attributes OncepostState (Keyword) and OncepostSince (Datetime) in the namespace",
	},
	{
		code: codes.InvalidArgument, texts: []string{"Namespace not set", "namespace not set"}, class: Misconfigured,
		hint: "set TEMPORAL_NAMESPACE",
	},
	{code: codes.InvalidArgument, class: Never},
	{code: codes.NotFound, class: Misconfigured, hint: "create the namespace, or set TEMPORAL_NAMESPACE and TEMPORAL_ADDRESS to the right one"},
	{code: codes.PermissionDenied, class: Misconfigured, hint: "allow the relay's identity to start workflows in the namespace"},
	{code: codes.Unauthenticated, class: Misconfigured, hint: "check the API key or the client certificate"},
	{
		code: codes.FailedPrecondition, texts: []string{"namespace", "Namespace"}, class: Misconfigured,
		hint: "the namespace is not in a state in which workflows can start",
	},
	{code: codes.Unimplemented, class: Misconfigured, hint: "TEMPORAL_ADDRESS does not lead to a Temporal frontend, or to one that is too old"},
}

// classify maps the error of a start. What stands in no rule is Away: nothing is written, and it is tried again.
func classify(err error) Outcome {
	if err == nil {
		return Outcome{}
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Outcome{Class: Away, Reason: text}
	}
	code := codeOf(err)
	for _, r := range rules {
		if r.code == code && contains(text, r.texts) {
			return Outcome{Class: r.class, Reason: reason(text, r.hint), Overload: r.over}
		}
	}
	return Outcome{Class: Away, Reason: text}
}

func codeOf(err error) codes.Code {
	var service serviceerror.ServiceError
	if errors.As(err, &service) {
		return service.Status().Code()
	}
	return status.Code(err)
}

func contains(text string, any []string) bool {
	for _, s := range any {
		if strings.Contains(text, s) {
			return true
		}
	}
	return len(any) == 0
}

func reason(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + " (" + hint + ")"
}
