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
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
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
	// Own are activities of the caller's own: functions, and structs with methods, as Temporal's RegisterActivity takes them. They
	// run on the workflows' task queue, so that a stop of the mails is none of theirs, and may call activities.Once. One that may
	// take longer than Grace is cut off by a restart of the worker: with Once its effect is unknown then.
	Own []any
	// Parked tells people of an effect that waits for them. Default: a line in the log.
	Parked func(ctx context.Context, p activities.Parked) error
	// Stops are the stops that all worker processes share. Default: none; a send that meets a stop is then only tried again.
	Stops Stops
	// Look is how often Stops is looked at. Default 2 s.
	Look time.Duration
	// Report tells people that sending has stopped in this process, once for each stop, and that it goes on. Default: a line
	// in the log.
	Report func(r StopReport)
	// Answered hears of each answer of the Mailer, for counting. It must not block. Optional.
	Answered func(a activities.Answer)
	// MaxSends bounds the sends in flight in this process. Default 100.
	MaxSends int
	// Grace is how long a stop waits for sends in flight. Default 35 s, longer than any send takes.
	Grace time.Duration
	// Logger. Default slog.Default().
	Logger *slog.Logger
	// Started is called once workflows are polled, and sends too unless they are stopped. Optional.
	Started func()
}

// grace is longer than a send's StartToClose time-out of 30 s, so that a stop cuts none off.
const grace = 35 * time.Second

// Run waits for Temporal and its namespace where they are not there yet, serves until ctx ends, then lets sends in flight
// finish. An error means that the worker could not start, or that Temporal ended it for good (the namespace has gone, the
// credentials are refused).
func Run(ctx context.Context, cfg Config, registry workflows.Registry) error {
	if cfg.Client == nil || cfg.Activities == nil {
		return errors.New("worker: Client and Activities are required")
	}
	if a := cfg.Activities; a.Mailer == nil || a.Ledger == nil || a.Templates == nil || a.Payloads == nil {
		return errors.New("worker: Activities needs a Mailer, a Ledger, Templates and Payloads")
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
	if cfg.Parked == nil {
		cfg.Parked = LogParked(cfg.Logger)
	}
	if cfg.Look == 0 {
		cfg.Look = lookTime
	}
	if cfg.Report == nil {
		cfg.Report = LogStop(cfg.Logger)
	}
	fatal := make(chan error, 2) // one for each worker
	flows, err := startFlows(ctx, cfg, registry, fatal)
	if flows == nil || err != nil {
		return err // none where ctx has ended meanwhile
	}
	return serve(ctx, cfg, flows, fatal)
}

// serve governs the sends beside the workflows until ctx ends, or one of the workers for good.
func serve(ctx context.Context, cfg Config, flows worker.Worker, fatal chan error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sends sync.WaitGroup
	start := func(m activities.Mailer, slots int) (polling, error) {
		w := newSends(cfg, m, slots, fatal)
		if err := w.Start(); err != nil {
			return nil, fmt.Errorf("start on task queue %s: %w", schemas.SendTaskQueue, err)
		}
		return w, nil
	}
	sends.Go(func() { newGovernor(ctx, cfg, start).govern(ctx, cfg.Started) })
	select {
	case <-ctx.Done():
	case err = <-fatal:
		err = fmt.Errorf("worker: %w", err)
	}
	cancel()
	flows.Stop()
	sends.Wait()
	return err
}

// startFlows starts the worker of workflows once Temporal answers and has the namespace: a worker that is started before them
// must not give up. It returns nil where ctx ends first.
func startFlows(ctx context.Context, cfg Config, registry workflows.Registry, fatal chan<- error) (worker.Worker, error) {
	for pause := firstPause; awaitTemporal(ctx, cfg); pause = min(2*pause, maxPause) {
		w := newFlows(cfg, registry, fatal) // anew each time: a worker starts only once
		err := w.Start()
		if err == nil {
			return w, nil
		}
		if !noNamespace(err) {
			return nil, fmt.Errorf("worker: start on task queue %s: %w", schemas.WorkflowTaskQueue, err)
		}
		cfg.Logger.Warn("the Temporal namespace does not exist, will try again", "error", err, "after", pause)
		wait(ctx, pause)
	}
	return nil, nil //nolint:nilnil // stopped, which is no error
}

// noNamespace reports an answer that Temporal gives of a namespace that it does not have.
func noNamespace(err error) bool {
	var namespace *serviceerror.NamespaceNotFound
	var notFound *serviceerror.NotFound
	return errors.As(err, &namespace) || errors.As(err, &notFound)
}

// awaitTemporal waits until the frontend answers.
func awaitTemporal(ctx context.Context, cfg Config) bool {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		call, cancel := context.WithTimeout(ctx, checkTimeout)
		_, err := cfg.Client.CheckHealth(call, &client.CheckHealthRequest{})
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			cfg.Logger.Warn("Temporal does not answer, will try again", "error", err, "after", pause)
		}
		wait(ctx, pause)
	}
	return false
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

const (
	checkTimeout = 10 * time.Second
	firstPause   = time.Second
	maxPause     = 15 * time.Second
)

func newFlows(cfg Config, registry workflows.Registry, fatal chan<- error) worker.Worker {
	w := worker.New(cfg.Client, schemas.WorkflowTaskQueue, worker.Options{
		DisableRegistrationAliasing: true, // one function may serve several types
		WorkflowTaskPollerBehavior:  worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		BackgroundActivityContext:   activities.WithLedger(context.Background(), cfg.Activities.Ledger),
		WorkerStopTimeout:           cfg.Grace,
		OnFatalError:                func(err error) { report(fatal, err) },
	})
	// What is no mail goes on while sending is stopped: checks, and what a person has decided.
	w.RegisterActivity(&activities.Reports{Parked: cfg.Parked})
	for name, a := range map[string]any{"Check": cfg.Activities.Check, "Settle": cfg.Activities.Settle, "Authorise": cfg.Activities.Authorise} {
		w.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
	for _, a := range cfg.Own {
		w.RegisterActivity(a)
	}
	for _, t := range registry.Types() {
		w.RegisterWorkflowWithOptions(t.Workflow, workflow.RegisterOptions{Name: t.Name})
	}
	return w
}

func newSends(cfg Config, mailer activities.Mailer, slots int, fatal chan<- error) worker.Worker {
	acts := *cfg.Activities
	acts.Mailer = mailer
	w := worker.New(cfg.Client, schemas.SendTaskQueue, worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: slots,
		ActivityTaskPollerBehavior:         worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		WorkerStopTimeout:                  cfg.Grace,
		OnFatalError:                       func(err error) { report(fatal, err) },
	})
	w.RegisterActivity(&acts)
	return w
}

// LogParked returns the default of Config.Parked.
func LogParked(l *slog.Logger) func(context.Context, activities.Parked) error {
	return func(_ context.Context, p activities.Parked) error {
		l.Error("parked: a person must say what has happened", "message_id", p.MessageID, "event_type", p.EventType, "step", p.Step,
			"recipient_number", p.Recipient, "class", p.Class)
		return nil
	}
}

// LogStop returns the default of Config.Report.
func LogStop(l *slog.Logger) func(StopReport) {
	return func(r StopReport) {
		args := []any{"scope", r.Scope, "class", r.Class, "cause", r.Text, "by", r.By}
		if r.Resumed {
			l.Info("sending goes on", args...)
			return
		}
		l.Error("sending has stopped; no mail is lost", args...)
	}
}

// report keeps the first error of each worker; the workers end together.
func report(fatal chan<- error, err error) {
	select {
	case fatal <- err:
	default: // Run ends with the first
	}
}
