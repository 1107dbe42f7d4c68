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
	relay      *Relay
	pages      *outbox.Reader
	server     outbox.ServerState
	owner      *owner
	cursors    cursors
	pace       pace
	paging     bool      // pages instead of glances
	pagesUntil time.Time // at least
	rowSize    int       // mean bytes a row of the last page took
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
	rooms := r.rooms()
	epoch := r.relay.rows.beginRead()
	var page outbox.Page
	var asked []outbox.Position
	limit := r.glanceRows(rooms)
	if limit > 0 {
		page, err = r.glance(ctx, owned, limit)
	} else {
		asked = r.cursors.positions(owned, rooms, began)
		page, err = r.page(ctx, asked)
	}
	if err != nil {
		return false, err
	}
	took := time.Since(began)
	r.owner.progress.Add(1)
	r.relay.stats.polls.Add(1)
	r.measure(page.Rows) // once admitted, a row belongs to whoever starts it
	full := len(page.Rows) == limit
	fresh := r.relay.rows.admit(epoch, page.Rows, owned)
	if limit > 0 {
		more = r.glanced(full, took, began)
	} else {
		more = r.cursors.advance(asked, page.Rows, &fresh, took, began)
		counts := owned.perLane()
		seenAll := !more && len(asked) == counts[express]+counts[others]
		r.paging = !seenAll || began.Before(r.pagesUntil)
	}
	if limit > 0 || len(asked) > 0 { // with no room for a row there was nothing to find
		total := 0
		for _, n := range fresh {
			total += n
		}
		r.pace.after(total, took)
	}
	return more, nil
}

const (
	// glanceLimit is how many rows a glance takes. When it finds as many, there is more to do than it can see.
	glanceLimit = 512
	// pagesFor is for how long pages are read then at least, from each shard its share, behind cursors; and until none of
	// them is full.
	pagesFor = 200 * time.Millisecond
	// slowGlance: over the tombstones of a long snapshot a glance, which begins at the heads, gets slow; cursors pass them by.
	slowGlance = 10 * time.Millisecond
	// pagesForSlow is for how long it is not tried again then.
	pagesForSlow = 5 * time.Second
)

// glanceRows is the limit of a glance, or 0 where pages are due.
func (r *reader) glanceRows(rooms [2]int) int {
	limit := glanceLimit
	if r.rowSize > 0 {
		limit = min(limit, max(outbox.Shards, pageBytes/r.rowSize))
	}
	if r.paging || min(rooms[express], rooms[others]) < minPage/2 {
		return 0
	}
	return limit
}

// glanced takes what a glance came to, and reports whether there is more to read.
func (r *reader) glanced(full bool, took time.Duration, now time.Time) (more bool) {
	switch {
	case full:
		r.pagesUntil = now.Add(pagesFor)
	case took > slowGlance:
		r.pagesUntil = now.Add(pagesForSlow)
	default:
		return false
	}
	r.paging, r.cursors = true, cursors{} // they begin at the heads
	return full
}

func (r *reader) glance(ctx context.Context, owned *shardSet, limit int) (outbox.Page, error) {
	var shards []uint8
	for shard, mine := range owned {
		if mine {
			shards = append(shards, uint8(shard))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.relay.cfg.callTimeout)
	defer cancel()
	page, err := r.pages.Glance(ctx, shards, limit)
	return r.checked(page, err)
}

func (r *reader) page(ctx context.Context, asked []outbox.Position) (outbox.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, r.relay.cfg.callTimeout)
	defer cancel()
	page, err := r.pages.Page(ctx, asked)
	return r.checked(page, err)
}

func (r *reader) checked(page outbox.Page, err error) (outbox.Page, error) {
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
