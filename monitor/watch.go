package monitor

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
)

// Config of a Watch. DB, Client, Namespace and Logger are required.
type Config struct {
	DB        *sql.DB // migrated
	Client    client.Client
	Namespace string
	Logger    *slog.Logger
	// Thresholds. All processes should have the same.
	Thresholds Thresholds
	// Tell tells people; nil means that somebody was reached. Default: this process tells nobody, and leaves it to others.
	Tell func(ctx context.Context, n Notice) error
	// Quiet says that nobody is meant to be told, so that no warning is due where Tell is nil.
	Quiet bool
	// Self is what this process's own relay and worker say of themselves, for its metrics. Default: nothing.
	Self func() Published
	// Heartbeat is a URL that is asked every minute while this process looks, for a service that misses it. Default: none.
	Heartbeat string
}

// Watch looks at the pipeline every few seconds, and tells people what they must know. It survives whatever it watches.
type Watch struct {
	cfg      Config
	every    time.Duration
	database database
	temporal temporal
	tracked  *tracked
	memory   *memory
	teller   *teller
	pulse    *pulse

	wrote   atomic.Pointer[string] // why this process's row could not be written, nil if it could
	looked  time.Time              // last
	counted time.Time

	uncounted bool // not all workflows could be

	state   atomic.Pointer[State]
	ended   atomic.Pointer[time.Time] // when the last look was
	history history
}

// NewWatch returns a Watch that does not look yet.
func NewWatch(cfg Config) (*Watch, error) {
	cfg.Thresholds = cfg.Thresholds.WithDefaults()
	if err := cfg.Thresholds.Validate(); err != nil {
		return nil, err
	}
	if cfg.DB == nil || cfg.Client == nil || cfg.Logger == nil {
		return nil, errors.New("monitor: DB, Client and Logger are required")
	}
	pulse, err := newPulse(cfg.Heartbeat, cfg.Logger)
	if err != nil {
		return nil, err
	}
	return &Watch{
		cfg: cfg, every: cfg.Thresholds.BeatEvery(), pulse: pulse,
		database: database{db: cfg.DB}, temporal: temporal{cfg.Client, cfg.Namespace},
		tracked: newTracked(), memory: newMemory(cfg.Thresholds), teller: newTeller(cfg),
	}, nil
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	ticks := time.NewTicker(w.every)
	defer ticks.Stop()
	defer w.teller.wait()
	w.look(ctx)
	w.greet()
	if w.pulse != nil {
		var beats sync.WaitGroup
		defer beats.Wait()
		beats.Go(func() { w.pulse.run(ctx, w.looks) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.look(ctx)
		}
	}
}

// greet says what the first look has found.
func (w *Watch) greet() {
	s := w.State()
	if s == nil {
		return // a stop came first
	}
	alive := map[string]int{}
	for _, p := range s.Processes {
		if p.Alive {
			alive[p.Role]++
		}
	}
	w.cfg.Logger.Info("the pipeline at the start", "database", s.Database.state(), "temporal", s.Temporal.state(), "pending", s.Outbox.Pending.String(),
		"failed", s.Outbox.Failed.String(), "relays", alive[RoleRelay], "workers", alive[RoleWorker], "watches", alive[RoleWatch],
		"running", number(s.Workflows.Running), "parked", number(s.Workflows.Parked), "stuck", number(s.Workflows.Stuck), "stops", len(s.Stops),
		"tells_people", w.cfg.Tell != nil)
	if w.cfg.Tell == nil && !w.cfg.Quiet {
		w.cfg.Logger.Warn("this process tells nobody of what it sees: no way to send alerts is set (ONCEPOST_ALERT_FROM and ONCEPOST_ALERT_TO, or " +
			"ONCEPOST_ALERT_WEBHOOK)")
	}
}

// looks reports whether the last look is not long ago.
func (w *Watch) looks() bool {
	at := w.ended.Load()
	return at != nil && time.Since(*at) < pulseEvery
}

// State is the last look's; nil before the first. It must not be changed.
func (w *Watch) State() *State { return w.state.Load() }

// Wrote hears how the last write of this process's row has ended: a database that answers and takes no writes is of no use.
func (w *Watch) Wrote(err error) {
	if err == nil {
		w.wrote.Store(nil)
		return
	}
	text := err.Error()
	w.wrote.Store(&text)
}

// Publish adds to what a process says of itself what it sees.
func (w *Watch) Publish(p Published) Published {
	s := w.State()
	if s == nil {
		return p
	}
	for _, c := range s.Conditions {
		p.Sees = append(p.Sees, key{c.Name, c.Subject}.String())
	}
	p.Waiting = s.here.Seconds()
	return p
}

func (w *Watch) look(ctx context.Context) {
	now := time.Now()
	if !w.looked.IsZero() && now.Sub(w.looked) > 3*w.every+2*lookTimeout { // this process was frozen, or the machine asleep
		w.memory.forget()
		w.tracked.forget()
	}
	w.looked = now
	s := w.read(ctx)
	if ctx.Err() != nil {
		return // what a stop has cut off says nothing
	}
	facts, unknown := Facts(s, w.cfg.Thresholds)
	s.unknown = unknown
	w.memory.see(facts, unknown, time.Now())
	s.Conditions = w.memory.active(time.Now())
	w.history.add(s)
	w.state.Store(s)
	w.teller.tell(ctx, s, w.memory)
	ended := time.Now()
	w.ended.Store(&ended)
}

// read asks the database and Temporal at the same time: each may hang for as long as its time-out.
func (w *Watch) read(ctx context.Context) *State {
	s := &State{At: time.Now().UTC()}
	flows, clock := &State{}, make(chan time.Time, 1)
	var both sync.WaitGroup
	both.Go(func() { w.database.read(ctx, s, w.tracked, w.cfg.Thresholds, clock) })
	both.Go(func() {
		flows.Temporal, flows.At = w.temporal.probe(ctx), <-clock
		w.count(ctx, flows)
	})
	both.Wait()
	s.Temporal, s.Workflows, s.Queues = flows.Temporal, flows.Workflows, flows.Queues
	if failed := w.wrote.Load(); failed != nil && s.Database.OK {
		s.Database.OK, s.Database.Error = false, "it answers, and takes no writes: "+*failed
	}
	s.here = w.tracked.waiting()
	for i, q := range s.Queues {
		s.Queues[i].Workers = s.serving(q.Name)
	}
	return s
}

// mostCounts bounds the counting of workflows in one look.
const mostCounts = 5 * time.Second

// count counts workflows less often than the rest is looked at: it costs Temporal most.
func (w *Watch) count(ctx context.Context, s *State) {
	if !s.Temporal.OK {
		return
	}
	t := w.cfg.Thresholds
	if last := w.State(); last != nil && time.Since(w.counted) < max(w.every, min(30*time.Second, t.Stuck/3, t.Parked/3)) {
		s.Workflows, s.Queues = last.Workflows, append([]Queue(nil), last.Queues...)
		return
	}
	call, cancel := context.WithTimeout(ctx, mostCounts)
	defer cancel()
	err := w.temporal.counts(call, s, t)
	switch {
	case ctx.Err() != nil:
	case err != nil && !w.uncounted:
		w.cfg.Logger.Error("not all workflows can be counted: nobody is told of what this would show; it is tried again and again", "error", err)
	case err == nil && w.uncounted:
		w.cfg.Logger.Info("all workflows can be counted again")
	}
	w.counted, w.uncounted = time.Now(), err != nil
}
