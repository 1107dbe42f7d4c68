package starter

import (
	"fmt"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// cursors remember how far each shard has been read. Reads go forward from there. But a row that commits late, or that has
// a natural key, may stand behind the cursor; and while UUIDs come faster than they can be started, a forward read never
// gets to the keys behind them. So probes set out from a shard's head, and after that from behind all UUIDs, again and
// again: each passes over the rows in flight until it meets new ones or the end.
type cursors struct {
	shards    [outbox.Shards]cursor
	nextProbe time.Time
	found     time.Time // when a probe last found what forward reads had missed
	took      time.Duration
	turn      bool // this read is a probe's
	behind    bool // the probe under way set out behind the UUIDs
	backlog   bool // the last probe from the heads met more new rows than a page holds
	lean      bool // every shard of the others has more than its share of a page: pages take a few shards each, in turn
	next      int  // the shard that a lean page begins with
}

type cursor struct {
	forward string
	probe   string
	probing bool
}

const (
	// probeEveryMost is the longest time between two probes.
	probeEveryMost = 200 * time.Millisecond
	// probeShare: while probes find rows they set out more often, for at most one part in so many of the time. Over the
	// tombstones of a long snapshot a probe is slow, and stays rare.
	probeShare = 10
	// leanRows is how many rows of a shard a lean page takes at least. A shard costs a page about as much as 40 rows do.
	leanRows = 200
	// probeKeep is for how long after a find they set out more often.
	probeKeep = 5 * time.Second
)

// restart forgets a shard's position, when it has been taken over.
func (c *cursors) restart(shard uint8) { c.shards[shard] = cursor{} }

// probeNow makes the next read a probe.
func (c *cursors) probeNow() { c.nextProbe = time.Time{} }

// positions returns where to read on in the owned shards, so that each lane gets about its room of rows.
func (c *cursors) positions(owned *shardSet, rooms [2]int, now time.Time) []outbox.Position {
	c.decideTurn(owned, now)
	arms := owned.perLane()
	lean := c.lean && !c.turn // a probe must pass over every shard, and soon
	if lean {
		arms[others] = min(arms[others], max(1, rooms[others]/leanRows))
	}
	var out []outbox.Position
	var taken [2]int
	for i := range outbox.Shards { // express shards come first
		shard := uint8(outbox.Shards - 1 - i)
		if i >= outbox.FirstExpressShard {
			shard = uint8((c.next + i) % outbox.FirstExpressShard) //nolint:gosec // below 16
		}
		lane := laneOf(shard)
		if !owned[shard] || rooms[lane] == 0 || taken[lane] == arms[lane] {
			continue
		}
		taken[lane]++
		cur := &c.shards[shard]
		p := outbox.Position{Shard: shard, After: cur.forward, Limit: (rooms[lane] + arms[lane] - 1) / arms[lane]}
		if c.turn && cur.probing {
			p.After = cur.probe
		}
		out = append(out, p)
	}
	if lean && taken[others] > 0 {
		c.next = int(out[len(out)-1].Shard) + 1
	}
	return out
}

// decideTurn lets probes set out when it is time, and alternates between a probe under way and forward reads.
func (c *cursors) decideTurn(owned *shardSet, now time.Time) {
	under := false
	for i, mine := range owned {
		under = under || mine && c.shards[i].probing
	}
	if !under && !now.Before(c.nextProbe) {
		c.setOut(owned, now)
		under, c.turn = true, false
	}
	c.turn = under && !c.turn
}

func (c *cursors) setOut(owned *shardSet, now time.Time) {
	start := ""
	if c.behind = c.backlog; c.behind {
		start = behindUUIDs(now)
	}
	c.backlog = false
	for i, mine := range owned {
		if mine {
			c.shards[i].probe, c.shards[i].probing = start, true
		}
	}
	pause := probeEveryMost
	if now.Sub(c.found) < probeKeep {
		pause = min(pause, probeShare*c.took)
	}
	c.nextProbe = now.Add(pause)
}

// behindUUIDs is a key behind every UUID version 7 made until a day from now.
func behindUUIDs(now time.Time) string {
	return fmt.Sprintf("%012x", now.Add(24*time.Hour).UnixMilli())[:8]
}

// advance moves the cursors over a page, and reports whether any shard has more. fresh says how many of its rows were new.
func (c *cursors) advance(asked []outbox.Position, rows []outbox.Row, fresh *[outbox.Shards]int, took time.Duration, now time.Time) (more bool) {
	if c.turn {
		c.took = took
		more = c.behind // it says nothing of what waits before the keys it set out behind
	}
	more = more || c.lean     // nor does a lean page of the shards it leaves out
	asks, short, i := 0, 0, 0 // of the others
	for _, p := range asked {
		n, last := 0, ""
		for ; i < len(rows) && rows[i].Shard == p.Shard; i++ {
			n++
			last = rows[i].MessageID
		}
		full := n == p.Limit
		more = more || full
		if laneOf(p.Shard) == others {
			if asks++; !full {
				short++
			}
		}
		if cur := &c.shards[p.Shard]; !c.turn || !cur.probing {
			cur.forward = max(cur.forward, last)
		} else if c.movedProbe(cur, full, fresh[p.Shard], last) {
			c.found = now
		}
	}
	if asks > 0 && (!c.turn || short == 0 && !c.behind) { // a probe's short page tells nothing of what waits ahead
		c.lean = short == 0
	}
	return more
}

// movedProbe takes a probe's page, and reports whether the probe met what a forward read would not have.
func (c *cursors) movedProbe(cur *cursor, full bool, fresh int, last string) (missed bool) {
	missed = fresh > 0 && cur.forward != ""
	switch {
	case !full: // the end
		cur.probing = false
		cur.forward = max(cur.forward, last)
	case fresh > 0:
		cur.probing = false
		if !c.behind {
			c.backlog = true
			cur.forward = min(cur.forward, last) // more of them wait there: go on from here
		}
	default: // all in flight
		cur.probe = last
	}
	return missed
}
