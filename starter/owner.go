package starter

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

// memberSlots is how many relays can own shards at once. A further one stands by.
const memberSlots = outbox.Shards / 2

type shardSet [outbox.Shards]bool

// of returns the shards of some lanes.
func (s *shardSet) of(lanes ...int) (shards []uint8) {
	for i, in := range s {
		if shard := uint8(i); in && slices.Contains(lanes, laneOf(shard)) {
			shards = append(shards, shard)
		}
	}
	return shards
}

// owner shares the shards out among the relays that live. It holds one of the membership slots and a lock for each shard
// it owns, all on one session; when that ends, for whatever reason, everything is free at once.
//
// A member that can start workflows holds its well lock too. While any does, those that cannot (a wrong address, an expired
// certificate) own nothing: their share would stand still.
//
// Ownership only saves work: two relays with one shard start nothing twice.
type owner struct {
	relay     *Relay
	session   *locks.Session
	lookSQL   string
	server    outbox.ServerState
	slots     []string // lock names
	wells     []string // beside each slot
	shards    []string
	slot      int          // ours, or -1
	well      bool         // we hold our well lock
	progress  atomic.Int64 // the reader's reads
	seen      int64
	sentinels time.Time // when they were last looked for

	mu     sync.Mutex
	owned  shardSet // held, and not about to be given up
	taken  []uint8  // since the reader last looked
	leaves shardSet // held, but being drained
}

func newOwner(r *Relay, s *sessions) (*owner, error) {
	ctx, cancel := context.WithTimeout(r.hard, r.cfg.callTimeout)
	defer cancel()
	o := &owner{relay: r, session: s.owner(), server: s.server, slot: -1, sentinels: time.Now()}
	var database sql.NullString
	if err := s.owner().Conn().QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return nil, fmt.Errorf("read the database's name: %w", err)
	}
	for i := range memberSlots {
		o.slots = append(o.slots, locks.Name(database.String, fmt.Sprintf("relay %02d", i)))
		o.wells = append(o.wells, locks.Name(database.String, fmt.Sprintf("relay %02d well", i)))
	}
	for i := range outbox.Shards {
		o.shards = append(o.shards, locks.Name(database.String, fmt.Sprintf("shard %02d", i)))
	}
	id, readOnly := s.kind.StateExprs()
	columns := []string{id, readOnly}
	for _, name := range slices.Concat(o.slots, o.wells) {
		columns = append(columns, locks.HeldExpr(name))
	}
	o.lookSQL = "SELECT " + strings.Join(columns, ", ")
	return o, o.tick(ctx)
}

// run looks a few times a second who lives. It renews the session only while the reader makes progress: a hung reader must
// not keep its shards, and the server ends a session that does not move.
func (o *owner) run(ctx context.Context) error {
	t := time.NewTicker(o.relay.cfg.tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		n := o.progress.Load()
		if n == o.seen {
			continue
		}
		o.seen = n
		if err := o.renew(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (o *owner) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.relay.cfg.callTimeout)
	defer cancel()
	if time.Since(o.sentinels) > sentinelsEvery {
		o.sentinels = time.Now()
		o.relay.rows.forgetWaiting(staleAfter)
		o.relay.gate.forgetStale(10 * staleAfter)
		if err := o.relay.restoreSentinels(ctx, o.session.Conn()); err != nil {
			return err
		}
	}
	return o.tick(ctx)
}

const (
	// sentinelsEvery is how often the sentinel rows are looked for, and what is remembered of rows that are gone is dropped.
	sentinelsEvery = time.Minute
	// staleAfter: a row that has not been read again for so long after its pause is gone.
	staleAfter = time.Minute
)

func (o *owner) tick(ctx context.Context) error {
	live, well, err := o.look(ctx)
	if err != nil {
		return fmt.Errorf("ownership: %w", err)
	}
	if o.slot < 0 {
		if err := o.join(ctx, live); err != nil {
			return err
		}
	}
	if err := o.tellHealth(ctx, well); err != nil {
		return err
	}
	return o.share(ctx, among(live, well))
}

// look reads, in one round trip, who answers, which membership slots are held, and by whom that is well.
func (o *owner) look(ctx context.Context) (live, well []bool, err error) {
	held := make([]bool, len(o.slots)+len(o.wells))
	var state outbox.ServerState
	targets := []any{&state.ID, &state.ReadOnly}
	for i := range held {
		targets = append(targets, &held[i])
	}
	if err := o.session.Conn().QueryRowContext(ctx, o.lookSQL).Scan(targets...); err != nil {
		return nil, nil, err
	}
	return held[:len(o.slots)], held[len(o.slots):], sameServer(o.server, state)
}

// tellHealth takes the well lock while workflows can be started, and frees it when they could not be for a while.
func (o *owner) tellHealth(ctx context.Context, well []bool) error {
	healthy := o.relay.gate.well(time.Now())
	if o.slot < 0 || healthy == o.well {
		return nil
	}
	lock := o.session.TryLock
	if !healthy {
		lock = o.session.Unlock
	}
	done, err := lock(ctx, o.wells[o.slot])
	if err != nil {
		return err
	}
	if done[0] {
		o.well, well[o.slot] = healthy, healthy
		o.relay.cfg.Logger.Info("relay can start workflows", "now", healthy, "slot", o.slot)
	}
	return nil
}

// among are the members that share the shards out: those that are well, or all where none is.
func among(live, well []bool) []bool {
	if slices.Contains(well, true) {
		return well
	}
	return live
}

// join takes a free slot, if there is one.
func (o *owner) join(ctx context.Context, live []bool) error {
	for slot, held := range live {
		if held {
			continue
		}
		got, err := o.session.TryLock(ctx, o.slots[slot])
		if err != nil {
			return err
		}
		if got[0] {
			o.slot, live[slot] = slot, true
			o.relay.cfg.Logger.Info("relay joined", "slot", slot)
			return nil
		}
	}
	return nil
}

// share takes the shards that are ours by the present members and free, and gives up those that are another's, once
// nothing of them is in flight.
func (o *owner) share(ctx context.Context, live []bool) error {
	var want, give []string
	var wanted, given []uint8
	o.mu.Lock()
	for i := range o.shards {
		shard := uint8(i)
		mine := o.slot >= 0 && ownerOf(shard, live) == o.slot
		switch held := o.owned[shard] || o.leaves[shard]; {
		case mine && !held:
			want, wanted = append(want, o.shards[i]), append(wanted, shard)
		case mine && o.leaves[shard]:
			o.leaves[shard], o.owned[shard] = false, true
			o.taken = append(o.taken, shard)
		case !mine && o.owned[shard]:
			o.owned[shard], o.leaves[shard] = false, true
		}
		if o.leaves[shard] && o.relay.rows.leave(shard, o.relay.finds.lockedIn(shard)) {
			give, given = append(give, o.shards[i]), append(given, shard)
		}
	}
	o.mu.Unlock()
	if _, err := o.session.Unlock(ctx, give...); err != nil {
		return err
	}
	got, err := o.session.TryLock(ctx, want...)
	if err != nil {
		return err
	}
	o.record(given, wanted, got)
	return nil
}

func (o *owner) record(given, wanted []uint8, got []bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, shard := range given {
		o.leaves[shard] = false
	}
	for i, shard := range wanted {
		if got[i] {
			o.owned[shard] = true
			o.taken = append(o.taken, shard)
		}
	}
	now := o.owned
	o.relay.health.owned.Store(&now)
	total := int64(len(o.owned.of(express, others)))
	if before := o.relay.stats.shards.Swap(total); before != total {
		o.relay.cfg.Logger.Info("relay owns shards", "count", total, "slot", o.slot)
	}
}

// reading returns the shards to read, and those among them that were taken over since the last call.
func (o *owner) reading() (owned *shardSet, taken []uint8) {
	o.mu.Lock()
	defer o.mu.Unlock()
	set := o.owned
	taken, o.taken = o.taken, nil
	return &set, taken
}

// ownerOf is the slot that owns a shard among the live ones, by rendezvous hashing: every relay comes to the same answer,
// and one that comes or goes moves no shards between the others. -1 where none lives.
func ownerOf(shard uint8, live []bool) int {
	best, bestScore := -1, uint64(0)
	for slot, alive := range live {
		if !alive {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte{shard, byte(slot), 0x6f, 0x70}) // never fails (documented in hash.Hash)
		if score := mix(h.Sum64()); best < 0 || score > bestScore {
			best, bestScore = slot, score
		}
	}
	return best
}

// mix spreads FNV's weak high bits over the word (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
