package locks

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// hold is a session with the locks that it holds.
type hold struct {
	l      *Locker
	cancel context.CancelCauseFunc // ends the context of what runs under the locks
	first  *time.Timer             // begins the keeper: most functions are over before
	closed chan struct{}           // ends it, and those who wait for further locks
	hurry  context.CancelFunc      // cuts off its statement
	keeper sync.WaitGroup

	mu      sync.Mutex // guards all below; one statement runs at a time
	s       *Session
	mark    string // a lock of a random name, by which the session is known from another, whatever its ID
	marked  bool   // it is taken
	held    []lock
	doubt   []lock    // those that the session may hold, once it is given up
	timeout int       // the session's own wait_timeout, s
	guarded bool      // that is another for the time being
	heard   time.Time // when the last statement that was answered began
	working bool      // a caller's function runs under the locks
	lost    error     // why the session is not to be used any more
	ended   bool      // it has been ended, or that was reported
	reports []Report  // to be made once mu is free
}

type holdKey struct{ l *Locker }

// holding is the hold that ctx comes from, if any.
func (l *Locker) holding(ctx context.Context) (h *hold, ok bool) {
	h, ok = ctx.Value(holdKey{l}).(*hold)
	return h, ok
}

// open returns a hold of nothing, and the context for what runs under it.
func (l *Locker) open(ctx context.Context) (*hold, context.Context, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("locks: connect: %w", err)
	}
	h := &hold{
		l: l, s: &Session{conn: conn}, closed: make(chan struct{}), heard: time.Now(),
		mark: "oncepost:session:" + strings.ToLower(rand.Text()),
	}
	ctx, h.cancel = context.WithCancelCause(context.WithValue(ctx, holdKey{l}, h))
	watch, hurry := context.WithCancel(context.Background())
	h.hurry = hurry
	h.keeper.Add(1)
	h.first = time.AfterFunc(guardAfter, func() { h.keep(watch) })
	return h, ctx, nil
}

// unlock unlocks mu, and makes the reports that have come up.
func (h *hold) unlock() {
	reports := h.reports
	h.reports = nil
	h.mu.Unlock()
	for _, r := range reports {
		h.l.tell(r)
	}
}

// ask runs a statement of one row, within the time in which the locks count as held and no longer than most. mu is locked.
func (h *hold) ask(ctx context.Context, most time.Duration, query string, into ...any) error {
	return h.within(ctx, most, func(ctx context.Context) error { return h.s.conn.QueryRowContext(ctx, query).Scan(into...) })
}

func (h *hold) within(ctx context.Context, most time.Duration, run func(ctx context.Context) error) error {
	if h.lost != nil {
		return h.lost
	}
	began := time.Now()
	if h.marked { // the first statement is bounded by the keeper, which costs nothing while it has not begun
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(most, h.heard.Add(h.l.timeout*2/3).Sub(began)))
		defer cancel()
	}
	err := run(ctx)
	if err == nil {
		h.heard = began
	}
	return err
}

// begin says that a caller's function runs from now on: that a lock is lost matters to people.
func (h *hold) begin() {
	h.mu.Lock()
	h.working = true
	h.mu.Unlock()
}

// lose gives the session up. It may hold doubtful ones too. mu is locked.
func (h *hold) lose(point string, err error, doubtful ...lock) {
	if h.lost != nil {
		return
	}
	lost := &LostError{Keys: keys(h.held), Err: err}
	h.lost, h.doubt = lost, slices.Concat(h.held, doubtful)
	if len(h.held) > 0 && h.working {
		h.report(point, lost.Keys, err)
	}
	h.cancel(lost)
}

func (h *hold) report(point string, keys []string, err error) {
	h.reports = append(h.reports, Report{Point: point, Keys: keys, Session: h.s.id, Err: err})
}

// takeAll takes the locks one after the other, or none of them.
func (h *hold) takeAll(ctx context.Context, all []lock, wait time.Duration) error {
	began := time.Now()
	for i, lk := range all {
		if err := h.take(ctx, lk, began, wait); err != nil {
			h.giveBack(all[:i])
			return err
		}
	}
	return nil
}

// slice is how long one statement waits, s: below the read time-out of any driver, and a wait that is given up ends so soon at the
// server, too.
const slice = 1

func (h *hold) take(ctx context.Context, lk lock, began time.Time, wait time.Duration) error {
	for seconds := 0; ; seconds = slice {
		err := h.try(ctx, lk, seconds)
		if over := ctx.Err(); err == nil && over != nil { // it came too late
			h.giveBack([]lock{lk})
			err = fmt.Errorf("locks: take %q: %w", lk.key, over)
		}
		var no *NotAcquiredError
		if !errors.As(err, &no) {
			return err
		}
		if no.Deadlock || no.Own || wait >= 0 && time.Since(began) >= wait {
			no.Waited = time.Since(began)
			return no
		}
	}
}

// try makes one statement of it. Where that leaves a doubt, the session is given up.
func (h *hold) try(ctx context.Context, lk lock, seconds int) error {
	h.mu.Lock()
	defer h.unlock()
	select {
	case <-h.closed:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("locks: take %q: %w", lk.key, ctx.Err())
	default:
	}
	if slices.Contains(h.held, lk) {
		return &NotAcquiredError{Key: lk.key, Holder: h.s.id, Own: true}
	}
	if len(h.held) > 0 {
		ctx = context.WithoutCancel(ctx) // a statement that is cut off ends the session, and loses what it holds
	}
	mark := "1"
	if !h.marked {
		mark = "GET_LOCK('" + h.mark + "', 0)"
	}
	var (
		marked, got sql.NullString // drivers and proxies are known that make it text
		holder      sql.NullInt64
		timeout     int
		began       = time.Now()
	)
	err := h.ask(ctx, h.l.timeout, fmt.Sprintf("SELECT %s, GET_LOCK('%[2]s', %[3]d), CONNECTION_ID(), @@wait_timeout, IS_USED_LOCK('%[2]s')", mark, lk.name, seconds),
		&marked, &got, &h.s.id, &timeout, &holder)
	h.marked = h.marked || err == nil && marked.String == "1"
	if !h.guarded {
		h.timeout = timeout
	}
	switch {
	case err == nil && !h.marked:
		err = fmt.Errorf("locks: take %q: GET_LOCK of a new name answered %s, want 1", lk.key, shown(marked))
	case deadlock(err):
		return &NotAcquiredError{Key: lk.key, Deadlock: true}
	case misnamed(err):
		return fmt.Errorf("locks: take %q: the server refuses the name %s: %w", lk.key, lk.name, err)
	case err != nil && errors.Is(context.Cause(ctx), errSilent):
		err = fmt.Errorf("locks: take %q: %w", lk.key, errSilent)
	case err != nil:
		err = fmt.Errorf("locks: take %q: %w", lk.key, err)
	case got.String == "0":
		h.heard = began.Add(time.Duration(seconds) * time.Second) // so long the server has been at it
		return &NotAcquiredError{Key: lk.key, Holder: holder.Int64}
	case got.String != "1":
		err = fmt.Errorf("locks: take %q: GET_LOCK answered %s, want 1 or 0", lk.key, shown(got))
	case holder.Int64 != h.s.id:
		err = fmt.Errorf("locks: take %q: GET_LOCK answered 1, but session %d holds it and this is session %d: "+
			"named locks do not hold behind this server or proxy", lk.key, holder.Int64, h.s.id)
	default:
		h.held = append(h.held, lk)
		return nil
	}
	h.lose(PointConnectionGone, err, lk)
	return err
}

// giveBack releases some locks, while the session goes on.
func (h *hold) giveBack(all []lock) {
	h.mu.Lock()
	defer h.unlock()
	h.release(all)
	if h.lost != nil {
		h.endSession() // what it may hold must not stay taken while the outer function goes on
	}
}

// release releases them, or gives the session up. mu is locked.
func (h *hold) release(all []lock) {
	if len(all) == 0 || h.lost != nil {
		return
	}
	names := make([]string, len(all))
	for i, lk := range all {
		names[i] = lk.name
	}
	var released []bool
	err := h.within(context.Background(), cleanUp, func(ctx context.Context) (err error) { // the caller's context may be over
		released, err = h.s.Unlock(ctx, names...)
		return err
	})
	switch {
	case gone(err):
		h.lose(PointConnectionGone, err)
	case err != nil:
		h.lose(PointReleaseFailed, err)
	case slices.Contains(released, false):
		h.lose(PointLockLost, fmt.Errorf("RELEASE_LOCK of %q answered 0 or NULL", all[slices.Index(released, false)].key))
	default:
		h.held = slices.DeleteFunc(h.held, func(lk lock) bool { return slices.Contains(names, lk.name) })
	}
}

func keys(all []lock) (names []string) {
	for _, lk := range all {
		names = append(names, lk.key)
	}
	return names
}

func shown(answer sql.NullString) string {
	if !answer.Valid {
		return "NULL"
	}
	return fmt.Sprintf("%q", answer.String)
}
