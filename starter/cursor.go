package starter

import (
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// cursors remember how far each shard has been read. Reads go on from there; but a row that commits late, or that has a
// natural key, may stand behind the cursor, so that every shard is also swept from its head, again and again.
type cursors struct {
	shards    [outbox.Shards]cursor
	nextSweep time.Time
	found     time.Time // when a sweep last found what forward reads had missed
	sweepTurn bool
	sweepTook time.Duration
}

type cursor struct {
	forward  string
	sweep    string
	sweeping bool
}

const (
	// sweepEvery is the longest time between two sweeps.
	sweepEvery = 200 * time.Millisecond
	// sweepShare: while sweeps find rows they run more often, for at most this share of the time. Over the tombstones of
	// a long snapshot a sweep is slow, and stays rare.
	sweepShare = 10
	// sweepKeep is for how long after a find they run more often.
	sweepKeep = 5 * time.Second
)

// restart forgets a shard's position, when it has been taken over.
func (c *cursors) restart(shard uint8) { c.shards[shard] = cursor{} }

// sweepNow makes the next read a sweep.
func (c *cursors) sweepNow() { c.nextSweep = time.Time{} }

// positions returns where to read on in the owned shards, so that each lane gets about its room of rows.
func (c *cursors) positions(owned *shardSet, rooms [2]int, now time.Time) []outbox.Position {
	c.beginSweep(now)
	counts := owned.perLane()
	var out []outbox.Position
	for s := outbox.Shards - 1; s >= 0; s-- { // express shards come first
		shard := uint8(s) //nolint:gosec // below 32
		lane := laneOf(shard)
		if !owned[shard] || rooms[lane] == 0 {
			continue
		}
		cur := &c.shards[shard]
		p := outbox.Position{Shard: shard, After: cur.forward, Limit: (rooms[lane] + counts[lane] - 1) / counts[lane]}
		if c.sweepTurn && cur.sweeping {
			p.After = cur.sweep
		}
		out = append(out, p)
	}
	return out
}

// beginSweep decides whether this read sweeps: one that is under way takes turns with forward reads.
func (c *cursors) beginSweep(now time.Time) {
	under := false
	for i := range c.shards {
		under = under || c.shards[i].sweeping
	}
	if !under && !now.Before(c.nextSweep) {
		for i := range c.shards {
			c.shards[i].sweep, c.shards[i].sweeping = "", true
		}
		pause := sweepEvery
		if now.Sub(c.found) < sweepKeep {
			pause = min(pause, sweepShare*c.sweepTook)
		}
		c.nextSweep = now.Add(pause)
		under, c.sweepTurn = true, false
	}
	c.sweepTurn = under && !c.sweepTurn
}

// advance moves the cursors over a page, and reports whether any shard has more. fresh is how many of its rows were new.
func (c *cursors) advance(asked []outbox.Position, rows []outbox.Row, fresh int, took time.Duration, now time.Time) (more bool) {
	if c.sweepTurn {
		c.sweepTook = took
		if fresh > 0 {
			c.found = now
		}
	}
	i := 0
	for _, p := range asked {
		n, last := 0, ""
		for ; i < len(rows) && rows[i].Shard == p.Shard; i++ {
			n++
			last = rows[i].MessageID
		}
		more = more || n == p.Limit
		c.shards[p.Shard].move(c.sweepTurn, n == p.Limit, last)
	}
	return more
}

// move takes the last ID read, and whether the page was full. A sweep is over when it reaches the end or the forward cursor.
func (c *cursor) move(sweepTurn, full bool, last string) {
	if !sweepTurn || !c.sweeping {
		if last != "" {
			c.forward = last
		}
		return
	}
	c.sweep = last
	if !full || last >= c.forward {
		c.sweeping = false
		c.forward = max(c.forward, last)
	}
}
