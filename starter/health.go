package starter

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Health is how a relay is at this moment, for whoever watches it.
type Health struct {
	// Shards are those that it owns.
	Shards []int
	// Read is how long ago the outbox was last read with success, or since the relay was made where it never was.
	Read time.Duration
	// Started is how long ago a workflow was last started or found started; negative where none was.
	Started time.Duration
	// Waiting is for how long the relay has known a row that has not started yet.
	Waiting time.Duration
	// Conditions are those that hold, by name, with their Detail.
	Conditions map[string]string
}

// Health returns how the relay is. It is cheap enough for once in a few seconds.
func (r *Relay) Health() Health {
	h := Health{
		Read: r.health.read.ago(r.health.made), Started: -1,
		Waiting: r.rows.longest(time.Now()), Conditions: r.health.conditions(),
	}
	if r.health.started.at.Load() != 0 {
		h.Started = r.health.started.ago(r.health.made)
	}
	if owned := r.health.owned.Load(); owned != nil {
		for shard, in := range owned {
			if in {
				h.Shards = append(h.Shards, shard)
			}
		}
	}
	return h
}

// health is what Health tells.
type health struct {
	made          time.Time
	read, started moment
	owned         atomic.Pointer[shardSet]

	mu    sync.Mutex
	holds map[string]string
}

// moment is when something happened last, by the steady clock.
type moment struct{ at atomic.Int64 } // nanoseconds after made

func (m *moment) now(made time.Time) { m.at.Store(int64(time.Since(made))) }

func (m *moment) ago(made time.Time) time.Duration {
	return time.Since(made) - time.Duration(m.at.Load())
}

// note keeps the conditions that hold beside reporting them.
func (h *health) note(report func(Condition)) func(Condition) {
	return func(c Condition) {
		if c.Name != CondFailed && c.Name != CondIDReused { // those do not pass
			h.mu.Lock()
			if c.Active {
				h.holds[c.Name] = c.Detail
			} else {
				delete(h.holds, c.Name)
			}
			h.mu.Unlock()
		}
		report(c)
	}
}

func (h *health) conditions() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.holds)
}
