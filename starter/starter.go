// Package starter is the thin relay: it turns each committed row of outbox_messages into exactly one Temporal workflow,
// and deletes the row.
//
// How it stays simple: rows carry no claim. Relays share the table's 32 shards out among themselves by named locks, read
// their shards without locking anything, start workflows while holding no transaction and no connection, and delete what
// has started in batches. Ownership only saves work: should two relays ever read one row, Temporal refuses the second
// start, because the workflow ID is the message ID.
//
// It does not render or send mail (package activities), and it alarms nobody by itself: what a person should know goes to
// Config.Report.
package starter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/oncepost/oncepost/outbox"
)

// Starter is what the relay starts workflows with. It must be safe for concurrent use. [NewTemporal] makes the real one.
type Starter interface {
	// Start asks once for the workflow of row, to begin after delay (never negative). It must return soon after ctx ends.
	Start(ctx context.Context, row *outbox.Row, delay time.Duration) Outcome
	// Namespace returns the name and the UUID of the namespace that Start reaches now. With an Outcome other than
	// Started the two mean nothing.
	Namespace(ctx context.Context) (name, id string, o Outcome)
}

// Relay reads, starts and deletes. Make it with New and run it once.
type Relay struct {
	cfg     Config
	db      *sql.DB
	starter Starter

	rows         *inflight
	finds        *finished
	gate         *gate
	limit        *limiter
	large        *semaphore.Weighted // bytes of loaded large rows
	loads        *semaphore.Weighted // connections that read large rows
	nudge        chan struct{}
	workers      sync.WaitGroup
	hard         context.Context // ends when the grace period has passed; bounds every start
	stats        counters
	deadline     deadline
	waking       atomic.Bool  // a worker is on its way to its first row
	stopping     atomic.Bool  // start nothing more
	databaseAway atomic.Int32 // by what
	readOnly     atomic.Bool  // reported as such
	cannotMove   atomic.Bool
	health       health
	table        outbox.Table
	stale        []mark // of sessions that the server may still have
	hangs        func() // tests make the reader hang here
}

// MinConnections is how many connections a relay needs of its pool, and so of its server.
const MinConnections = 2 + deleters + 2

// New returns a relay over the tables in db's database. Config's zero value is complete.
func New(db *sql.DB, s Starter, cfg Config) (*Relay, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if most := db.Stats().MaxOpenConnections; most > 0 && most < MinConnections {
		return nil, fmt.Errorf("starter: the pool may open %d connections; a relay needs %d: %d sessions of its own, one to look at the "+
			"namespace, one to read large messages", most, MinConnections, 2+deleters)
	}
	r := &Relay{
		cfg: cfg, db: db, starter: s,
		rows:  newInflight(),
		finds: newFinished(),
		gate:  newGate(cfg),
		limit: newLimiter(cfg.MaxStarts, cfg.FixedSizes),
		large: semaphore.NewWeighted(cfg.MaxBytes),
		loads: semaphore.NewWeighted(maxLoads),
		nudge: make(chan struct{}, 1),

		deadline: deadline{timeout: cfg.StartTimeout},
		health:   health{made: time.Now(), holds: map[string]string{}},
		hangs:    func() {},
	}
	r.cfg.Report = r.health.note(cfg.Report)
	return r, nil
}

// Nudge says that rows were just committed, so that an idle relay looks at once. It never blocks.
func (r *Relay) Nudge() {
	select {
	case r.nudge <- struct{}{}:
	default: // one is waiting already
	}
}

// Run works until ctx ends, and then stops gracefully: it reads nothing more, waits for starts in flight, deletes what
// has started, and frees its shards, for at most Config.Grace. Outages of the database or of Temporal do not end it.
// Run must be called once.
func (r *Relay) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.hard = hard
	defer context.AfterFunc(ctx, func() {
		r.stopping.Store(true)
		time.AfterFunc(r.cfg.Grace, cancel) // after Run it cancels what has ended already
	})()

	var guards sync.WaitGroup
	guards.Go(func() { r.guard(ctx) })
	defer guards.Wait()

	backoff := newBackoff(r.cfg.minBackoff, r.cfg.maxBackoff)
	for ctx.Err() == nil {
		began := time.Now()
		err := r.term(ctx)
		r.rows.dropQueued()
		if ctx.Err() != nil {
			r.workers.Wait()
			return r.afterStop(err)
		}
		if time.Since(began) > r.cfg.maxBackoff {
			backoff.reset()
		}
		r.databaseFailed(bySessions, err)
		sleep(ctx, backoff.next())
	}
	r.workers.Wait()
	return nil
}

// afterStop turns the last term's end into Run's: a stop that ran out of grace is worth an error, since starts may have
// been cut off. (Nothing is lost: their rows are still there.)
func (r *Relay) afterStop(err error) error {
	if r.hard.Err() != nil {
		return fmt.Errorf("relay: not everything in flight was finished within the grace period of %s; the rows are "+
			"still there and will be started again, which changes nothing for those that have started", r.cfg.Grace)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.cfg.Logger.Warn("relay stopped while the database was away", "error", err)
	}
	return nil
}

// Stats counts what a relay has done since it was made.
type Stats struct {
	Polls      int64 // reads of pages
	Started    int64 // workflows started
	Duplicates int64 // starts that Temporal refused because this very message had started before
	Failed     int64 // messages moved to outbox_failed
	Retried    int64 // starts that will be tried again
	Deleted    int64 // rows gone from the table after their start
	Shards     int64 // shards owned now
	InFlight   int64 // starts running now
	Limit      int64 // starts that may run at once now
}

type counters struct {
	polls, started, duplicates, failed, retried, deleted, shards atomic.Int64
}

// Stats returns the counts so far.
func (r *Relay) Stats() Stats {
	c := &r.stats
	return Stats{
		Polls: c.polls.Load(), Started: c.started.Load(), Duplicates: c.duplicates.Load(), Failed: c.failed.Load(),
		Retried: c.retried.Load(), Deleted: c.deleted.Load(), Shards: c.shards.Load(),
		InFlight: int64(r.rows.starting()), Limit: int64(r.limit.current()),
	}
}
