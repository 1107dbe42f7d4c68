package devtemporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	pollEvery    = 20 * time.Millisecond
	readyTimeout = 30 * time.Second
)

// dial connects to the frontend, waiting until it answers.
func (s *Server) dial(ctx context.Context) (c client.Client, err error) {
	err = poll(ctx, "the frontend on "+s.FrontendAddr(), func(ctx context.Context) error {
		c, err = client.DialContext(ctx, client.Options{
			HostPort:  s.FrontendAddr(),
			Namespace: s.opts.Namespace,
			Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		})
		return err
	})
	return c, err
}

// CreateNamespace makes a further namespace with the search attributes of Options, unless it exists, and returns when
// it is usable.
func (s *Server) CreateNamespace(ctx context.Context, name string, retention time.Duration) error {
	_, err := s.client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        name,
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return s.awaitNamespace(ctx, name)
}

// NamespaceID is the namespace's UUID. A namespace of the same name on another Dir has another one.
func (s *Server) NamespaceID(ctx context.Context, name string) (string, error) {
	r, err := s.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		return "", fmt.Errorf("describe namespace %s: %w", name, err)
	}
	return r.GetNamespaceInfo().GetId(), nil
}

// awaitNamespace returns when the namespace has the search attributes, adding those that it lacks, and knows them.
func (s *Server) awaitNamespace(ctx context.Context, name string) error {
	return poll(ctx, "namespace "+name, func(ctx context.Context) error {
		if err := s.addMissing(ctx, name); err != nil {
			return err
		}
		return s.usable(ctx, name)
	})
}

func (s *Server) addMissing(ctx context.Context, name string) error {
	operator := s.client.OperatorService()
	has, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: name})
	if err != nil {
		return err
	}
	missing := map[string]enumspb.IndexedValueType{}
	for attribute, kind := range s.opts.SearchAttributes {
		switch had, ok := has.CustomAttributes[attribute]; {
		case !ok:
			missing[attribute] = kind
		case had != kind:
			return fmt.Errorf("%w: search attribute %s is %s and not %s", errHopeless, attribute, had, kind)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: name, SearchAttributes: missing,
	})
	return err
}

// usable asks the frontend to resolve each search attribute, as it does when a workflow starts with it.
func (s *Server) usable(ctx context.Context, name string) error {
	queries := []string{"WorkflowId = ''"}
	for attribute := range s.opts.SearchAttributes {
		queries = append(queries, "`"+attribute+"` IS NULL AND WorkflowId = ''")
	}
	for _, query := range queries {
		_, err := s.client.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: name, Query: query,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errHopeless ends a poll: waiting does not help.
var errHopeless = errors.New("cannot be used")

// poll calls ready until it succeeds, for at most readyTimeout.
func poll(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, errHopeless) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last: %w)", what, ctx.Err(), err)
		case <-time.After(pollEvery):
		}
	}
}
