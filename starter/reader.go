package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// reader reads the owned shards on a session of its own, page after page while there is work, and otherwise at a pace
// that it finds by itself.
type reader struct {
	relay   *Relay
	pages   *outbox.Reader
	server  outbox.ServerState
	owner   *owner
	cursors cursors
	pace    pace
	paging  [2]bool      // by lane: from cursors instead of a glance
	until   [2]time.Time // at least
	rowSize int          // mean bytes a row of the last page took
}

var (
	errReadOnly    = errors.New("the server is read-only: a demoted primary, or one in maintenance")
	errOtherServer = errors.New("the connections lead to different servers, as after a failover")
)

// maxUndeleted bounds the rows that have started and wait for their delete. Beyond it nothing is read.
const maxUndeleted = deleters * outbox.MaxDelete

// pageBytes bounds what one page may hold, by the mean row size of the page before.
const pageBytes = 16 << 20

func (r *reader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := r.read(ctx)
		if ctx.Err() != nil {
			return nil // a stop in the middle of a read is no failure: what is in flight must still be drained
		}
		if err != nil {
			return err
		}
		r.relay.kick()
		if err := r.wait(ctx, more); err != nil {
			return nil //nolint:nilerr // a stop is no error
		}
	}
	return nil
}

// read asks for one page, and reports whether there is more to read at once.
func (r *reader) read(ctx context.Context) (more bool, err error) {
	r.relay.hangs()
	owned, taken := r.owner.reading()
	for _, shard := range taken {
		r.cursors.restart(shard)
	}
	began := time.Now()
	epoch := r.relay.rows.beginRead()
	ask := r.ask(owned, began)
	page, err := r.page(ctx, ask)
	if err != nil {
		return false, err
	}
	took := time.Since(began)
	r.owner.progress.Add(1)
	r.relay.stats.polls.Add(1)
	r.relay.health.read.now(r.relay.health.made)
	r.measure(page.Rows) // once admitted, a row belongs to whoever starts it
	fresh := r.relay.rows.admit(epoch, page.Rows, owned)
	more = r.looked(ask, page.Rows, &fresh, took, began)
	if ask.any() { // with no room for a row there was nothing to find
		total := 0
		for _, n := range fresh {
			total += n
		}
		r.pace.after(total, took)
	}
	return more, nil
}

// ask is what one read asks for: of each lane a glance at the heads or, where that is not enough, pages from cursors.
type ask struct {
	glance    outbox.Glance
	glanced   [2]bool
	positions []outbox.Position
	all       [2]bool // a position for each shard owned
}

func (a *ask) any() bool { return a.glance.Limit > 0 || len(a.positions) > 0 }

const (
	// glanceLimit is how many rows a glance takes. When it finds as many, there is more to do than it can see.
	glanceLimit = 512
	// pagesFor is for how long pages are read then at least, from each shard its share, behind cursors; and until none of
	// them is full.
	pagesFor = 200 * time.Millisecond
	// slowGlance: over the tombstones of a long snapshot a glance, which begins at the heads, gets slow; cursors pass them
	// by. Each row of a page takes at most slowRow.
	slowGlance = 10 * time.Millisecond
	slowRow    = 20 * time.Microsecond
	// pagesForSlow is for how long it is not tried again then.
	pagesForSlow = 5 * time.Second
)

// ask decides what to read next. The others' lane is glanced at only together with the express lane: where the others have a
// backlog one glance at the express lane is much cheaper than a position in each of its shards.
func (r *reader) ask(owned *shardSet, now time.Time) (a ask) {
	rooms := r.rooms()
	enough := func(lane int) bool { return rooms[lane] >= minPage/2 }
	switch {
	case r.paging[express] || !enough(express):
	case r.paging[others] || !enough(others):
		a.glanced = [2]bool{express: true}
		a.glance = outbox.Glance{Shards: owned.of(express)}
		rooms[express] = 0
	default:
		a.glanced = [2]bool{true, true}
		a.glance = outbox.Glance{Shards: owned.of(express, others)}
		rooms = [2]int{}
	}
	if len(a.glance.Shards) > 0 {
		a.glance.Limit = r.glanceRows()
	}
	a.positions = r.cursors.positions(owned, rooms, now)
	var asked [2]int
	for _, p := range a.positions {
		asked[laneOf(p.Shard)]++
	}
	for lane := range a.all {
		a.all[lane] = asked[lane] == len(owned.of(lane))
	}
	return a
}

func (r *reader) glanceRows() int {
	if r.rowSize > 0 {
		return min(glanceLimit, max(outbox.Shards, pageBytes/r.rowSize))
	}
	return glanceLimit
}

// looked takes what a read found, and reports whether there is more to read at once.
func (r *reader) looked(a ask, rows []outbox.Row, fresh *[outbox.Shards]int, took time.Duration, now time.Time) (more bool) {
	n := len(rows) // found by the glance
	if len(a.positions) > 0 {
		for n = 0; a.glance.Limit > 0 && n < len(rows) && laneOf(rows[n].Shard) == express; n++ {
		}
	}
	paged := r.cursors.advance(a.positions, rows[n:], fresh, took, now)
	for lane := range r.paging {
		if !a.glanced[lane] && r.paging[lane] && !now.Before(r.until[lane]) {
			r.paging[lane] = paged[lane] || !a.all[lane]
		}
	}
	more = paged[express] || paged[others]
	if a.glance.Limit == 0 {
		return more
	}
	full := n == a.glance.Limit
	switch {
	case full:
		r.pageFor(pagesFor, a.glanced, now)
	case took > slowGlance+time.Duration(len(rows))*slowRow:
		r.pageFor(pagesForSlow, a.glanced, now)
	}
	return more || full
}

// pageFor turns to pages in lanes, which begin at the heads. Of two lanes that were glanced at together the express lane is
// asked again, alone, before it is paged: it is seldom the one with the backlog.
func (r *reader) pageFor(d time.Duration, lanes [2]bool, now time.Time) {
	lane := express
	if lanes[others] {
		lane = others
	}
	r.paging[lane], r.until[lane] = true, now.Add(d)
	r.cursors.restartLane(lane)
}

func (r *reader) page(ctx context.Context, a ask) (outbox.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, r.relay.cfg.callTimeout)
	defer cancel()
	page, err := r.pages.Page(ctx, a.glance, a.positions...)
	if err != nil {
		return page, fmt.Errorf("read a page: %w", err)
	}
	return page, sameServer(r.server, page.Server)
}

// sameServer checks who answered on a session against who did when the term began.
func sameServer(want, got outbox.ServerState) error {
	switch {
	case got.ReadOnly:
		return errReadOnly
	case got.ID != want.ID:
		return errOtherServer
	}
	return nil
}

// rooms is how many rows each lane may take: no more than a page, which is bounded in rows and in bytes.
func (r *reader) rooms() [2]int {
	page := r.relay.cfg.MaxPage
	if !r.relay.cfg.FixedSizes {
		page = min(page, max(minPage, int(r.pace.startRate()*pageSeconds)))
	}
	if r.rowSize > 0 {
		page = min(page, max(outbox.Shards, pageBytes/r.rowSize))
	}
	if r.relay.finds.waiting() > maxUndeleted {
		return [2]int{} // started rows would be read again and again, and only the deletes can go on
	}
	rooms := r.relay.rows.room(page)
	for i := range rooms {
		if rooms[i] < page/2 {
			rooms[i] = 0 // few large pages cost less than many small ones
		}
	}
	return rooms
}

func (r *reader) measure(rows []outbox.Row) {
	if len(rows) == 0 {
		return
	}
	total := 0
	for i := range rows {
		total += len(rows[i].Payload) + len(rows[i].Headers) + len(rows[i].MessageID) + 200
	}
	r.rowSize = total / len(rows)
}

// wait pauses until the next read: not at all while there is more and room for it.
func (r *reader) wait(ctx context.Context, more bool) error {
	pause := r.pace.pause()
	if more {
		if rooms := r.rooms(); rooms[express] > 0 && rooms[others] > 0 {
			return ctx.Err()
		}
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	case <-r.relay.nudge:
		r.pace.hurry()
		r.cursors.probeNow()
	case <-r.relay.rows.ready:
		if !more {
			return r.wait(ctx, false)
		}
	}
	return nil
}
