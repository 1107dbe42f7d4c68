package starter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestClassify has a line for each line of the table of rules, and for what stands in none.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Class
		over bool
	}{
		{"no error", nil, Started, false},
		{"request too large for the client", status.Error(codes.ResourceExhausted, "trying to send message larger than max (5000000 vs. 4194304)"), Never, false},
		{"request too large for the server", status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), Never, false},
		{"rate limit", serviceerror.NewResourceExhausted(0, "namespace rate limit exceeded"), Away, true},
		{"unregistered search attribute", serviceerror.NewInvalidArgument("Namespace default has no mapping defined for search attribute OncepostState"), Misconfigured, false},
		{"no namespace given", serviceerror.NewInvalidArgument("Namespace not set on request."), Misconfigured, false},
		{"workflow ID too long", serviceerror.NewInvalidArgument("WorkflowId length exceeds limit."), Never, false},
		{"namespace missing", serviceerror.NewNamespaceNotFound("default"), Misconfigured, false},
		{"permission", serviceerror.NewPermissionDenied("Request unauthorized.", ""), Misconfigured, false},
		{"credentials", status.Error(codes.Unauthenticated, "invalid API key"), Misconfigured, false},
		{"namespace being deleted", serviceerror.NewNamespaceInvalidState("default", 2, nil), Misconfigured, false},
		{"not a frontend", serviceerror.NewUnimplemented("unknown service"), Misconfigured, false},
		{"unavailable", serviceerror.NewUnavailable("connection refused"), Away, false},
		{"internal", serviceerror.NewInternal("something"), Away, false},
		{"deadline of ours", fmt.Errorf("start: %w", context.DeadlineExceeded), Away, false},
		{"deadline of the server", serviceerror.NewDeadlineExceeded("context deadline exceeded"), Away, false},
		{"cancelled", context.Canceled, Away, false},
		{"unknown to us", errors.New("no such error"), Away, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := classify(c.err)
			if got.Class != c.want || got.Overload != c.over {
				t.Errorf("class %v overload %v, want %v %v", got.Class, got.Overload, c.want, c.over)
			}
			if c.want != Started && got.Reason == "" {
				t.Error("no reason")
			}
		})
	}
}

func TestHashFramesItsParts(t *testing.T) {
	seen := map[string]string{}
	for _, m := range [][3]string{{"a", "bc", "1"}, {"ab", "c", "1"}, {"a", "b", "c1"}, {"A", "bc", "1"}, {"a", "bc", "1 "}, {"a", "bd", "1"}, {"a", "", "1"}} {
		h := Hash(m[0], m[1], []byte(m[2]))
		if other, dup := seen[h]; dup {
			t.Errorf("%v and %s have one hash", m, other)
		}
		seen[h] = fmt.Sprint(m)
	}
	if again := Hash("a", "bc", []byte("1")); seen[again] == "" {
		t.Error("one message has two hashes")
	}
}
