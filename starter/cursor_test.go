package starter

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// pageOf answers positions with new rows: as many as a position asks for, but in the shards of some only so many.
func pageOf(asked []outbox.Position, some map[uint8]int) (rows []outbox.Row, fresh [outbox.Shards]int) {
	for _, p := range asked {
		n := p.Limit
		if few, ok := some[p.Shard]; ok {
			n = few
		}
		for i := range n {
			rows = append(rows, row(p.Shard, fmt.Sprintf("%s+%04d", p.After, i)))
		}
		fresh[p.Shard] = n
	}
	return rows, fresh
}

// noExpress are answers of an empty express lane.
func noExpress() map[uint8]int {
	some := map[uint8]int{}
	for shard := uint8(outbox.FirstExpressShard); shard < outbox.Shards; shard++ {
		some[shard] = 0
	}
	return some
}

func othersAsked(asked []outbox.Position) (shards []uint8) {
	for _, p := range asked {
		if laneOf(p.Shard) == others {
			shards = append(shards, p.Shard)
		}
	}
	return shards
}

// turnPage reads one page of rooms rows per lane that is answered by some.
func turnPage(c *cursors, rooms int, some map[uint8]int, now time.Time) (asked []outbox.Position, more bool) {
	asked = c.positions(all(), [2]int{rooms, rooms}, now)
	rows, fresh := pageOf(asked, some)
	return asked, anyLane(c.advance(asked, rows, &fresh, time.Millisecond, now))
}

func anyLane(more [2]bool) bool { return more[express] || more[others] }

// forwardPage goes on until a page is no probe's of the others.
func forwardPage(c *cursors, rooms int, some map[uint8]int, now time.Time) (asked []outbox.Position, more bool) {
	for {
		if asked, more = turnPage(c, rooms, some, now); !c.probes[others].turn {
			return asked, more
		}
	}
}

// TestLeanPagesTakeFewShardsInTurn: what a shard costs is worth it only for many rows of it.
func TestLeanPagesTakeFewShardsInTurn(t *testing.T) {
	for rooms, arms := range map[int]int{leanRows / 2: 1, leanRows: 1, 4 * leanRows: 4, 100 * leanRows: outbox.FirstExpressShard} {
		t.Run(fmt.Sprint(rooms), func(t *testing.T) {
			var c cursors
			now := time.Now()
			if asked, _ := forwardPage(&c, rooms, noExpress(), now); len(asked) != outbox.Shards || !c.lean {
				t.Fatalf("the first page asks %d shards, lean after it: %v", len(asked), c.lean)
			}
			visited := map[uint8]int{}
			for range outbox.FirstExpressShard {
				now = now.Add(time.Millisecond)
				asked, more := forwardPage(&c, rooms, noExpress(), now)
				shards := othersAsked(asked)
				if len(shards) != arms || !c.lean || !more {
					t.Fatalf("a page of %d other shards, lean %v, more %v", len(shards), c.lean, more)
				}
				if len(asked)-arms != outbox.Shards-outbox.FirstExpressShard {
					t.Errorf("%d express shards", len(asked)-arms)
				}
				for _, p := range asked {
					if laneOf(p.Shard) == others && p.Limit != (rooms+arms-1)/arms {
						t.Errorf("shard %d: limit %d of %d", p.Shard, p.Limit, rooms)
					}
				}
				for _, shard := range shards {
					visited[shard]++
				}
			}
			for shard := range uint8(outbox.FirstExpressShard) {
				if visited[shard] != arms { // 16 pages of so many shards
					t.Errorf("shard %d was read %d times, want %d", shard, visited[shard], arms)
				}
			}
		})
	}
}

func TestAShardThatIsNotFullEndsLeanPages(t *testing.T) {
	var c cursors
	now := time.Now()
	forwardPage(&c, 4*leanRows, noExpress(), now)
	next := uint8(c.next)
	some := noExpress()
	some[(next+3)%outbox.FirstExpressShard] = 3 // the last of the next page's
	if _, more := forwardPage(&c, 4*leanRows, some, now); c.lean || !more {
		t.Errorf("lean %v, more %v: a lean page leaves shards out, and never shows that all was seen", c.lean, more)
	}
	if asked, _ := forwardPage(&c, 4*leanRows, noExpress(), now); len(asked) != outbox.Shards {
		t.Errorf("a page of %d shards after that, want all", len(asked))
	}
}

// TestWhatDoesNotShowThatAllWasSeen: a lean page leaves shards out, a probe's page asks only what it has not passed.
func TestWhatDoesNotShowThatAllWasSeen(t *testing.T) {
	now := time.Now()
	var none [outbox.Shards]int
	c := cursors{lean: true, probes: [2]probe{{next: now.Add(time.Hour)}, {next: now.Add(time.Hour)}}}
	if more := anyLane(c.advance(c.positions(all(), [2]int{leanRows, leanRows}, now), nil, &none, 0, now)); !more || c.lean {
		t.Errorf("an empty lean page: more %v, lean %v", more, c.lean)
	}
	c = cursors{}
	if more := anyLane(c.advance(c.positions(all(), [2]int{leanRows, leanRows}, now), nil, &none, 0, now)); !more || !c.probes[others].turn {
		t.Errorf("an empty probe: more %v, turn %v", more, c.probes[others].turn)
	}
	if more := anyLane(c.advance(c.positions(all(), [2]int{leanRows, leanRows}, now), nil, &none, 0, now)); more {
		t.Error("an empty forward page of all shards claims that there is more")
	}
}

// TestProbesSetOutBehindTheUUIDsAfterABacklog, where natural keys stand; the next one sets out from the heads.
func TestProbesSetOutBehindTheUUIDsAfterABacklog(t *testing.T) {
	for lane, name := range []string{express: "express", others: "others"} {
		t.Run(name, func(t *testing.T) {
			var c cursors
			c.probes[lane].backlog = true // the last probe from the heads met more than a page holds
			now := time.Now()
			for _, want := range []string{behindUUIDs(now), ""} {
				asked := c.positions(all(), [2]int{outbox.Shards, outbox.Shards}, now)
				if !c.probes[lane].turn {
					t.Fatal("no probe set out")
				}
				for _, p := range asked {
					if laneOf(p.Shard) == lane && p.After != want {
						t.Errorf("shard %d is probed from %q, want %q", p.Shard, p.After, want)
					}
				}
				if more := c.advance(asked, nil, &[outbox.Shards]int{}, time.Millisecond, now); want != "" && !more[lane] {
					t.Error("an empty probe from behind the UUIDs was taken for an empty table")
				}
				c.advance(c.positions(all(), [2]int{outbox.Shards, outbox.Shards}, now), nil, &[outbox.Shards]int{}, time.Millisecond, now)
				now = now.Add(time.Second)
			}
		})
	}
}

// TestABacklogOfTheOthersKeepsNoProbeBack: an express row that commits late, or has a natural key, stands behind the cursor.
func TestABacklogOfTheOthersKeepsNoProbeBack(t *testing.T) {
	var c cursors
	now := time.Now()
	for shard := outbox.FirstExpressShard; shard < outbox.Shards; shard++ {
		c.shards[shard].forward = "z:last"
	}
	heads := 0
	const pages = 2000
	for range pages {
		now = now.Add(50 * time.Millisecond)
		asked, _ := turnPage(&c, 256, noExpress(), now)
		for _, p := range asked {
			if laneOf(p.Shard) == express && p.After == "" {
				heads++
			}
		}
	}
	// A probe is due each 200 ms, and takes a page or two.
	if due := 16 * pages / 4; heads < due/2 {
		t.Errorf("the heads of express shards were read %d times; about %d were due", heads, due)
	}
}

// TestTheExpressLaneIsGlancedAtBesideABacklog: it is asked with one arm, until it has a backlog of its own; then it is paged, for as
// long as that lasts and no longer.
func TestTheExpressLaneIsGlancedAtBesideABacklog(t *testing.T) {
	cfg, err := quick().withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{relay: &Relay{cfg: cfg, rows: newInflight(), finds: newFinished()}, pace: pace{done: func() int64 { return 0 }}}
	now := time.Now()
	look := func(glanced, expressPages int, backlog bool) {
		t.Helper()
		a := r.ask(all(), now)
		if n := len(a.positions) - len(othersAsked(a.positions)); len(a.glance.Shards) != glanced || n != expressPages {
			t.Fatalf("glanced at %d shards, paged %d express ones; want %d and %d", len(a.glance.Shards), n, glanced, expressPages)
		}
		some := noExpress()
		for shard := uint8(0); shard < outbox.FirstExpressShard && !backlog; shard++ {
			some[shard] = 0
		}
		rows, fresh := pageOf(a.positions, some)
		if more := r.looked(a, rows, &fresh, time.Millisecond, now); more != backlog {
			t.Fatalf("more: %v", more)
		}
	}
	full := func(shard uint8) {
		t.Helper()
		a := r.ask(all(), now)
		rows := make([]outbox.Row, a.glance.Limit)
		for i := range rows {
			rows[i].Shard = shard
		}
		if !r.looked(a, rows, &[outbox.Shards]int{}, time.Millisecond, now) {
			t.Fatal("a full glance has no more")
		}
	}
	look(32, 0, false)
	full(0) // the others have a backlog
	look(16, 0, true)
	look(16, 0, true)
	full(16) // the express lane as well
	look(0, 16, true)
	look(0, 16, true)
	now = now.Add(time.Second)
	look(0, 16, true)
	look(16, 0, true) // that one is gone: glances again, while the others' goes on
}
