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
	return asked, c.advance(asked, rows, &fresh, time.Millisecond, now)
}

// TestLeanPagesTakeFewShardsInTurn: what a shard costs is worth it only for many rows of it.
func TestLeanPagesTakeFewShardsInTurn(t *testing.T) {
	for rooms, arms := range map[int]int{leanRows / 2: 1, leanRows: 1, 4 * leanRows: 4, 100 * leanRows: outbox.FirstExpressShard} {
		t.Run(fmt.Sprint(rooms), func(t *testing.T) {
			var c cursors
			now := time.Now()
			if asked, _ := turnPage(&c, rooms, noExpress(), now); len(asked) != outbox.Shards || !c.lean {
				t.Fatalf("the first page asks %d shards, lean after it: %v", len(asked), c.lean)
			}
			visited := map[uint8]int{}
			for range outbox.FirstExpressShard {
				now = now.Add(time.Millisecond)
				asked, more := turnPage(&c, rooms, noExpress(), now)
				for c.turn { // a probe's page, of all shards
					if len(asked) != outbox.Shards {
						t.Fatalf("a probe of %d shards", len(asked))
					}
					asked, more = turnPage(&c, rooms, noExpress(), now)
				}
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
	turnPage(&c, 4*leanRows, noExpress(), now)
	next := uint8(c.next)
	some := noExpress()
	some[(next+3)%outbox.FirstExpressShard] = 3 // the last of the next page's
	if _, more := turnPage(&c, 4*leanRows, some, now); c.lean || !more {
		t.Errorf("lean %v, more %v: a lean page leaves shards out, and never shows that all was seen", c.lean, more)
	}
	if asked, _ := turnPage(&c, 4*leanRows, noExpress(), now); len(asked) != outbox.Shards {
		t.Errorf("a page of %d shards after that, want all", len(asked))
	}
}

// TestEmptyLeanPageDoesNotShowThatAllWasSeen: the shards that it left out may hold a backlog.
func TestEmptyLeanPageDoesNotShowThatAllWasSeen(t *testing.T) {
	var c cursors
	now := time.Now()
	turnPage(&c, leanRows, noExpress(), now)
	asked := c.positions(all(), [2]int{leanRows, leanRows}, now)
	if more := c.advance(asked, nil, &[outbox.Shards]int{}, time.Millisecond, now); !more {
		t.Error("an empty lean page was taken for an empty table")
	}
	asked = c.positions(all(), [2]int{leanRows, leanRows}, now)
	if len(asked) != outbox.Shards {
		t.Fatalf("a page of %d shards", len(asked))
	}
}

// TestProbeBehindTheUUIDsDoesNotShowThatAllWasSeen: it knows nothing of the keys before those it set out from.
func TestProbeBehindTheUUIDsDoesNotShowThatAllWasSeen(t *testing.T) {
	c := cursors{backlog: true} // the last probe from the heads met more than a page holds
	now := time.Now()
	const rooms = outbox.Shards
	behind := false
	for range 2 { // a forward read and the probe's, in some order
		asked := c.positions(all(), [2]int{rooms, rooms}, now)
		more := c.advance(asked, nil, &[outbox.Shards]int{}, time.Millisecond, now)
		if !c.turn {
			if more {
				t.Error("a forward read that found nothing claims that there is more")
			}
			continue
		}
		behind = true
		for _, p := range asked {
			if p.After != behindUUIDs(now) {
				t.Errorf("shard %d is probed from %q", p.Shard, p.After)
			}
		}
		if !more || c.lean {
			t.Errorf("more %v, lean %v after an empty probe from behind the UUIDs", more, c.lean)
		}
	}
	if !behind {
		t.Fatal("no probe set out")
	}
	// The next one sets out from the heads, and sees everything.
	now = now.Add(time.Second)
	for range 2 {
		asked := c.positions(all(), [2]int{rooms, rooms}, now)
		if more := c.advance(asked, nil, &[outbox.Shards]int{}, time.Millisecond, now); more || c.turn && asked[0].After != "" {
			t.Errorf("more %v, from %q", more, asked[0].After)
		}
	}
}

// TestProbeBehindTheUUIDsLeavesLeanPagesAsTheyAre: it says nothing of the rows before it.
func TestProbeBehindTheUUIDsLeavesLeanPagesAsTheyAre(t *testing.T) {
	for _, lean := range []bool{true, false} {
		for _, full := range []bool{true, false} {
			now := time.Now()
			c := cursors{behind: true, turn: false, lean: lean, nextProbe: now.Add(time.Hour)}
			for i := range c.shards {
				c.shards[i] = cursor{probe: behindUUIDs(now), probing: true}
			}
			some := noExpress()
			for shard := uint8(0); !full && shard < outbox.FirstExpressShard; shard++ {
				some[shard] = 0
			}
			if turnPage(&c, 4*leanRows, some, now); !c.turn || c.lean != lean {
				t.Errorf("full=%v: a probe's turn %v; lean %v, and %v before", full, c.turn, c.lean, lean)
			}
		}
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
