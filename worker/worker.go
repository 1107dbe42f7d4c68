// Package worker builds and runs the Temporal workers that serve a registry of event types: one for workflows and one, on
// a task queue of its own, for sends. It is importable, so that a service can run event types of its own:
//
//	worker.Run(ctx, cfg, workflows.Builtin().With(mine...))
//
// It does not read the outbox (package starter) and knows no provider: the caller gives it the activities.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/workflows"
)

// Config of Run.
type Config struct {
	// Client reaches the namespace. Required. It stays the caller's to close.
	Client client.Client
	// Activities are registered for sends. Required.
	Activities *activities.Activities
	// MaxSends bounds the sends in flight in this process. Default 100.
	MaxSends int
	// Grace is how long a stop waits for sends in flight. Default 35 s, longer than any send takes.
	Grace time.Duration
	// Logger. Default slog.Default().
	Logger *slog.Logger
	// Started is called once both workers poll. Optional.
	Started func()
}

// grace is longer than a send's StartToClose time-out of 30 s, so that a stop cuts none off.
const grace = 35 * time.Second

// Run waits for Temporal where it is away, serves until ctx ends, then lets sends in flight finish. An error means that the worker could not start, or that
// Temporal ended it for good (the namespace is gone, the credentials are refused).
func Run(ctx context.Context, cfg Config, registry workflows.Registry) error {
	if cfg.Client == nil || cfg.Activities == nil {
		return errors.New("worker: Client and Activities are required")
	}
	if err := registry.Validate(); err != nil {
		return err
	}
	if cfg.MaxSends == 0 {
		cfg.MaxSends = 100
	}
	if cfg.Grace == 0 {
		cfg.Grace = grace
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if !awaitTemporal(ctx, cfg) {
		return nil // stopped meanwhile
	}
	fatal := make(chan error, 2) // one for each worker
	flows := newFlows(cfg, registry, fatal)
	sends := newSends(cfg, fatal)
	if err := flows.Start(); err != nil {
		return fmt.Errorf("worker: start on task queue %s: %w", schemas.WorkflowTaskQueue, err)
	}
	if err := sends.Start(); err != nil {
		flows.Stop()
		return fmt.Errorf("worker: start on task queue %s: %w", schemas.SendTaskQueue, err)
	}
	if cfg.Started != nil {
		cfg.Started()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-fatal:
		err = fmt.Errorf("worker: %w", err)
	}
	flows.Stop()
	sends.Stop()
	return err
}

// awaitTemporal waits until the frontend answers: a worker that is started before its Temporal must not give up.
func awaitTemporal(ctx context.Context, cfg Config) bool {
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		call, cancel := context.WithTimeout(ctx, checkTimeout)
		_, err := cfg.Client.CheckHealth(call, &client.CheckHealthRequest{})
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			cfg.Logger.Warn("Temporal does not answer, will try again", "error", err, "after", pause)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
	return false
}

const (
	checkTimeout = 10 * time.Second
	maxPause     = 15 * time.Second
)

func newFlows(cfg Config, registry workflows.Registry, fatal chan<- error) worker.Worker {
	w := worker.New(cfg.Client, schemas.WorkflowTaskQueue, worker.Options{
		DisableRegistrationAliasing: true, // one function may serve several types
		WorkflowTaskPollerBehavior:  worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		LocalActivityWorkerOnly:     true, // this one runs no activities; their queue is the other worker's
		WorkerStopTimeout:           cfg.Grace,
		OnFatalError:                func(err error) { report(fatal, err) },
	})
	for _, t := range registry.Types() {
		w.RegisterWorkflowWithOptions(t.Workflow, workflow.RegisterOptions{Name: t.Name})
	}
	return w
}

func newSends(cfg Config, fatal chan<- error) worker.Worker {
	w := worker.New(cfg.Client, schemas.SendTaskQueue, worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: cfg.MaxSends,
		ActivityTaskPollerBehavior:         worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		WorkerStopTimeout:                  cfg.Grace,
		OnFatalError:                       func(err error) { report(fatal, err) },
	})
	w.RegisterActivity(cfg.Activities)
	return w
}

// report keeps the first error of each worker; the workers end together.
func report(fatal chan<- error, err error) {
	select {
	case fatal <- err:
	default: // Run ends with the first
	}
}
