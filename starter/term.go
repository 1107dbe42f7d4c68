package starter

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

// deleters is how many sessions delete. A second one hides the commit of the first.
const deleters = 2

// sessions are a term's connections. All of them lead to one server, which can be written to, or the term ends. The server
// ends each by itself when its client is gone without a word: a deleter's would keep its rows locked.
type sessions struct {
	all    []*locks.Session // the owner's, the reader's, the deleters'
	marks  []mark
	kind   outbox.Kind
	server outbox.ServerState
}

func (s *sessions) owner() *locks.Session   { return s.all[0] }
func (s *sessions) reader() *sql.Conn       { return s.all[1].Conn() }
func (s *sessions) deleter(i int) *sql.Conn { return s.all[2+i].Conn() }

// mark is a lock by a name that nobody else has. Servers give connection IDs anew after a restart; whoever holds the mark is
// the session that took it.
type mark struct {
	id   int64
	name string
}

// term opens the sessions and works on them until ctx ends or any of them fails in any way. Then all are ended, which
// frees the shards for others at once, and the next term begins on new ones. Starts in flight go on meanwhile: they need
// no database.
func (r *Relay) term(ctx context.Context) (err error) {
	s, err := r.openSessions(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := r.endStale(ctx, s); err != nil {
		return err
	}
	if err := r.restoreSentinels(ctx, s.owner().Conn()); err != nil {
		return err
	}
	r.databaseWorks(bySessions) // that sessions open says nothing of a table that somebody has locked
	own, err := newOwner(r, s)
	if err != nil {
		return err
	}
	defer r.disown()

	// The group ends with its first error. A stop ends the reader, then the deleters when nothing is in flight, then the
	// owner, so that no other relay takes a shard with rows in flight.
	group, broken := errgroup.WithContext(r.hard)
	reading, stopReading := context.WithCancel(broken)
	defer context.AfterFunc(ctx, stopReading)()
	defer stopReading()
	draining, drained := context.WithCancel(broken)
	defer drained()

	group.Go(func() error { return r.newReader(s, own).run(reading) })
	for i := range deleters {
		d := &deleter{relay: r, rows: r.table.NewDeleter(s.deleter(i), s.kind), server: s.server}
		group.Go(func() error { return d.run(draining) })
	}
	group.Go(func() error { return own.run(draining) })
	group.Go(func() error {
		<-reading.Done()
		r.drain(broken)
		drained()
		return nil
	})
	return group.Wait()
}

// disown notes that the relay owns nothing: its sessions have ended.
func (r *Relay) disown() {
	r.stats.shards.Store(0)
	r.health.owned.Store(nil)
}

// drain waits until no start is running and no started row waits for its delete. Rows that a producer's open transaction
// holds are left to the next relay.
func (r *Relay) drain(ctx context.Context) {
	r.rows.dropQueued()
	for ctx.Err() == nil && r.rows.unfinished() > r.finds.flush() {
		sleep(ctx, drainPoll)
	}
}

const drainPoll = 5 * time.Millisecond

func (r *Relay) newReader(s *sessions, own *owner) *reader {
	return &reader{
		relay: r, pages: r.table.NewReader(s.reader(), s.kind), server: s.server, owner: own,
		pace: pace{longest: r.cfg.MaxPoll, done: func() int64 { return r.stats.started.Load() + r.stats.duplicates.Load() }},
	}
}

func (r *Relay) openSessions(ctx context.Context) (s *sessions, err error) {
	s = &sessions{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.callTimeout)
	defer cancel()
	for range 2 + deleters {
		if err = s.open(ctx, r); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *sessions) open(ctx context.Context, r *Relay) error {
	session, err := locks.Open(ctx, r.db, r.cfg.sessionTimeout)
	if err != nil {
		return err
	}
	s.all = append(s.all, session)
	state, kind, err := prepare(ctx, session.Conn())
	if err != nil {
		return err
	}
	if len(s.all) == 1 {
		s.server, s.kind = state, kind
	}
	if err := sameServer(s.server, state); err != nil {
		return err
	}
	m := mark{id: session.ID(), name: locks.Name("", "relay session "+rand.Text())}
	s.marks = append(s.marks, m)
	_, err = session.TryLock(ctx, m.name)
	return err
}

// endStale ends the sessions of this relay's own previous terms that the server still has: after a network cut it knows
// nothing of the client's end, and would keep their locks until they time out. A user may end sessions of its own.
func (r *Relay) endStale(ctx context.Context, s *sessions) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.callTimeout)
	defer cancel()
	before := r.stale
	r.stale = append(slices.Clone(s.marks), before...) // until it is known that they have ended
	for _, m := range before {
		holder, err := s.owner().Holder(ctx, m.name)
		if err != nil {
			return err
		}
		if holder != m.id {
			continue
		}
		r.cfg.Logger.Info("ending a previous session of this relay, which the server still has", "connection_id", m.id)
		if err := s.owner().Kill(ctx, m.id); err != nil {
			return err
		}
	}
	r.stale = s.marks
	return nil
}

func prepare(ctx context.Context, conn *sql.Conn) (state outbox.ServerState, kind outbox.Kind, err error) {
	if kind, err = outbox.Prepare(ctx, conn); err != nil {
		return state, kind, err
	}
	if state, err = kind.State(ctx, conn); err != nil {
		return state, kind, fmt.Errorf("read the server's identity: %w", err)
	}
	if state.ReadOnly {
		return state, kind, errReadOnly
	}
	return state, kind, nil
}

func (r *Relay) restoreSentinels(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.callTimeout)
	defer cancel()
	missing, err := r.table.RestoreSentinels(ctx, conn)
	if err != nil {
		return fmt.Errorf("restore sentinel rows: %w", err)
	}
	if missing > 0 {
		r.cfg.Logger.Warn("restored sentinel rows that somebody had deleted from outbox_messages", "count", missing)
	}
	return nil
}

// close ends every session. None goes back to the pool: locks, settings and a call cut short end with them.
func (s *sessions) close() error {
	var errs []error
	for _, session := range s.all {
		errs = append(errs, session.Close())
	}
	return errors.Join(errs...)
}

// What of a relay uses the database, and can fail by itself.
const (
	bySessions int32 = 1 << iota
	byBinding
)

func (r *Relay) databaseFailed(by int32, err error) {
	if err == nil {
		return
	}
	r.cfg.Logger.Warn("the database failed, will try again", "error", err)
	first := r.databaseAway.Or(by) == 0
	// A failover shows as broken connections first: that the server is read-only says more, and what to do.
	better := errors.Is(err, errReadOnly) && r.readOnly.CompareAndSwap(false, true)
	if first || better {
		r.cfg.Report(Condition{Name: CondDatabase, Active: true, Detail: "the relay cannot work with the database: " +
			err.Error() + ". Nothing is lost; it connects again by itself"})
	}
}

func (r *Relay) databaseWorks(by int32) {
	if r.databaseAway.And(^by) == by {
		r.readOnly.Store(false)
		r.cfg.Report(Condition{Name: CondDatabase, Detail: "the relay works with the database again"})
	}
}
