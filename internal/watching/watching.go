// Package watching runs what makes a relay, a worker or a watch seen, and lets it see the others: its rows in the table processes,
// the Watch of package monitor, and the page and the metrics that it serves.
package watching

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/monitor"
	"github.com/oncepost/oncepost/starter"
)

// Config of New. DB, Client, Namespace, Version and Logger are required.
type Config struct {
	config.Watch

	DB        *sql.DB // migrated
	Client    client.Client
	Namespace string
	Version   string
	Logger    *slog.Logger
	// Alerter tells people. Default: this process leaves it to others.
	Alerter *alerts.Alerter
	// Quiet says that this process is not meant to tell anybody.
	Quiet bool
	// Relay and Tally are this process's own relay, and what its worker says of itself; nil where it has none. With neither the
	// process does nothing but watch.
	Relay *starter.Relay
	Tally *serve.Tally
	// Listener is where to serve, in place of Listen.
	Listener net.Listener
	// Registry is what /metrics shows, beside what is of the pipeline.
	Registry *prometheus.Registry
}

// Watching is what runs.
type Watching struct {
	cfg   Config
	watch *monitor.Watch
	beats []*monitor.Beat
}

// New returns a Watching that does nothing yet.
func New(cfg Config) (*Watching, error) {
	w := &Watching{cfg: cfg}
	var err error
	w.watch, err = monitor.NewWatch(monitor.Config{
		DB: cfg.DB, Client: cfg.Client, Namespace: cfg.Namespace, Logger: cfg.Logger, Thresholds: cfg.Monitor(),
		Tell: monitor.ByAlert(cfg.Alerter), Quiet: cfg.Quiet, Heartbeat: cfg.Heartbeat, Self: w.self,
	})
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.Relay == nil && cfg.Tally == nil:
		w.beat(monitor.RoleWatch, func() monitor.Published { return monitor.Published{} })
	default:
		if cfg.Relay != nil {
			w.beat(monitor.RoleRelay, w.relay)
		}
		if cfg.Tally != nil {
			w.beat(monitor.RoleWorker, w.worker)
		}
	}
	return w, nil
}

func (w *Watching) beat(role string, publish func() monitor.Published) {
	w.beats = append(w.beats, monitor.NewBeat(monitor.BeatConfig{
		DB: w.cfg.DB, Role: role, Version: w.cfg.Version, Every: w.cfg.Monitor().WithDefaults().BeatEvery(), Logger: w.cfg.Logger,
		Publish: func() monitor.Published { return w.watch.Publish(publish()) },
		Wrote: func(err error) {
			if mysqldb.Refused(err) { // of a right that is missing monitor.Check has told
				err = nil
			}
			w.watch.Wrote(err)
		},
	}))
}

// relay is what this process's relay says of itself.
func (w *Watching) relay() monitor.Published {
	stats, health := w.cfg.Relay.Stats(), w.cfg.Relay.Health()
	r := &monitor.Relay{
		Shards: health.Shards, InFlight: stats.InFlight, Limit: stats.Limit, Started: stats.Started, Duplicates: stats.Duplicates,
		Failed: stats.Failed, Retried: stats.Retried, Deleted: stats.Deleted, Polls: stats.Polls,
		ReadAgo: health.Read.Seconds(), Waiting: health.Waiting.Seconds(), Conditions: health.Conditions,
	}
	if health.Started >= 0 {
		ago := health.Started.Seconds()
		r.StartedAgo = &ago
	}
	return monitor.Published{Relay: r}
}

func (w *Watching) worker() monitor.Published { return monitor.Published{Worker: w.cfg.Tally.Worker()} }

// self is of all that this process does.
func (w *Watching) self() (p monitor.Published) {
	if w.cfg.Relay != nil {
		p.Relay = w.relay().Relay
	}
	if w.cfg.Tally != nil {
		p.Worker = w.worker().Worker
	}
	return p
}

// Run watches, and serves the page, until ctx ends. It returns an error only where the address to serve at, which was asked for,
// is not to be had.
func (w *Watching) Run(ctx context.Context) error {
	listener, err := w.listen(ctx)
	if err != nil {
		return err
	}
	if err := monitor.Check(ctx, w.cfg.DB); err != nil && ctx.Err() == nil {
		w.cfg.Logger.Error("this process cannot watch as it should; it works all the same", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { w.watch.Run(ctx) })
	for _, b := range w.beats {
		all.Go(func() { b.Run(ctx) })
	}
	if listener != nil {
		err = w.serve(ctx, listener)
		cancel()
	}
	all.Wait()
	return err
}

// registry is what /metrics shows.
func (w *Watching) registry() (*prometheus.Registry, error) {
	r := w.cfg.Registry
	if r == nil {
		r = prometheus.NewRegistry()
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "oncepost_build_info", Help: "1, of the version that runs."}, []string{"version"})
	build.WithLabelValues(w.cfg.Version).Set(1)
	return r, errors.Join(
		r.Register(w.watch.Metrics()), r.Register(build), r.Register(collectors.NewGoCollector()),
		r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})), r.Register(collectors.NewDBStatsCollector(w.cfg.DB, "oncepost")))
}
