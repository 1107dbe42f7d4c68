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
	shards [outbox.Shards]cursor
	probes [2]probe // of each lane: a backlog of the others must keep no express row waiting
	took   time.Duration
	lean   bool // every shard of the others has more than its share of a page: pages take a few shards each, in turn
	next   int  // the shard that a lean page begins with
}

// probe is the state of a lane's probes.
type probe struct {
	next    time.Time // when the next sets out
	found   time.Time // when one last found what forward reads had missed
	turn    bool      // this read is its, and not a forward one
	behind  bool      // the one under way set out behind the UUIDs
	backlog bool      // the last one from the heads met more new rows than a page holds
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
	leanRows = 400
	// probeKeep is for how long after a find they set out more often.
	probeKeep = 5 * time.Second
)

// restart forgets a shard's position, when it has been taken over.
func (c *cursors) restart(shard uint8) { c.shards[shard] = cursor{} }

// restartLane forgets a lane's positions: its next pages begin at the heads.
func (c *cursors) restartLane(lane int) {
	for i := range c.shards {
		if laneOf(uint8(i)) == lane {
			c.shards[i] = cursor{}
		}
	}
	c.probes[lane] = probe{}
	if lane == others {
		c.lean, c.next = false, 0
	}
}

// probeNow makes the next read a probe.
func (c *cursors) probeNow() {
	c.probes[express].next, c.probes[others].next = time.Time{}, time.Time{}
}

// positions returns where to read on in the owned shards, so that each lane gets about its room of rows.
func (c *cursors) positions(owned *shardSet, rooms [2]int, now time.Time) []outbox.Position {
	var out []outbox.Position
	for _, lane := range []int{express, others} {
		if rooms[lane] == 0 {
			continue
		}
		c.decideTurn(lane, owned, now)
		shards := c.choose(lane, owned, rooms[lane])
		for _, shard := range shards {
			cur := &c.shards[shard]
			p := outbox.Position{Shard: shard, After: cur.forward, Limit: (rooms[lane] + len(shards) - 1) / len(shards)}
			if c.probes[lane].turn && cur.probing {
				p.After = cur.probe
			}
			out = append(out, p)
		}
	}
	return out
}

// choose returns the shards of a lane that a page asks for: all; of the others those that a probe has not passed yet, where
// it is its turn; and of either, in a lean page, only a few.
func (c *cursors) choose(lane int, owned *shardSet, room int) (shards []uint8) {
	turn := c.probes[lane].turn
	for i := range outbox.Shards {
		shard := uint8((c.next + i) % outbox.Shards) //nolint:gosec // below 32
		if owned[shard] && laneOf(shard) == lane && (lane == express || !turn || c.shards[shard].probing) {
			shards = append(shards, shard)
		}
	}
	if few := max(1, room/leanRows); lane == others && c.lean && len(shards) > few {
		shards = shards[:few]
		if !turn {
			c.next = int(shards[few-1]) + 1
		}
	}
	return shards
}

// decideTurn lets a lane's probe set out when it is time, and alternates between a probe under way and forward reads.
func (c *cursors) decideTurn(lane int, owned *shardSet, now time.Time) {
	p := &c.probes[lane]
	under := false
	for shard, mine := range owned {
		under = under || mine && laneOf(uint8(shard)) == lane && c.shards[shard].probing
	}
	if !under && !now.Before(p.next) {
		c.setOut(lane, owned, now)
		under, p.turn = true, false
	}
	p.turn = under && !p.turn
}

func (c *cursors) setOut(lane int, owned *shardSet, now time.Time) {
	p := &c.probes[lane]
	start := ""
	if p.behind = p.backlog; p.behind {
		start = behindUUIDs(now)
	}
	p.backlog = false
	for shard, mine := range owned {
		if mine && laneOf(uint8(shard)) == lane {
			c.shards[shard].probe, c.shards[shard].probing = start, true
		}
	}
	pause := probeEveryMost
	if now.Sub(p.found) < probeKeep {
		pause = min(pause, probeShare*c.took)
	}
	p.next = now.Add(pause)
}

// behindUUIDs is a key behind every UUID version 7 made until a day from now.
func behindUUIDs(now time.Time) string {
	return fmt.Sprintf("%012x", now.Add(24*time.Hour).UnixMilli())[:8]
}

// advance moves the cursors over a page, and reports of each lane whether it has more. fresh says how many of its rows were
// new.
func (c *cursors) advance(asked []outbox.Position, rows []outbox.Row, fresh *[outbox.Shards]int, took time.Duration, now time.Time) (more [2]bool) {
	c.took = took
	asks, short, i := 0, 0, 0 // of the others
	for _, p := range asked {
		n, last := 0, ""
		for ; i < len(rows) && rows[i].Shard == p.Shard; i++ {
			n++
			last = rows[i].MessageID
		}
		full := n == p.Limit
		lane := laneOf(p.Shard)
		more[lane] = more[lane] || full
		if lane == others {
			if asks++; !full {
				short++
			}
		}
		if cur := &c.shards[p.Shard]; !c.probes[lane].turn || !cur.probing {
			cur.forward = max(cur.forward, last)
		} else if c.probes[lane].moved(cur, full, fresh[p.Shard], last) {
			c.probes[lane].found = now
		}
	}
	// Some pages say nothing of what waits in shards that they leave out, or before the keys they set out behind.
	if asks > 0 {
		more[others] = more[others] || c.lean || c.probes[others].turn
		if !c.probes[others].turn {
			c.lean = short == 0
		}
	}
	more[express] = more[express] || c.probes[express].turn && c.probes[express].behind
	return more
}

// moved takes a page of a probe in one shard, and reports whether it met what a forward read would not have.
func (p *probe) moved(cur *cursor, full bool, fresh int, last string) (missed bool) {
	missed = fresh > 0 && cur.forward != ""
	switch {
	case !full: // the end
		cur.probing = false
		cur.forward = max(cur.forward, last)
	case fresh > 0:
		cur.probing = false
		if !p.behind {
			p.backlog = true
			cur.forward = min(cur.forward, last) // more of them wait there: go on from here
		}
	default: // all in flight
		cur.probe = last
	}
	return missed
}
