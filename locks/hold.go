package locks

import (
	"context"
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
	closed chan struct{}           // ends it
	keeper sync.WaitGroup

	mu      sync.Mutex // guards all below; one statement runs at a time
	s       *Session
	held    []lock
	doubt   []lock    // the session may hold them: it has to be seen that it does not
	timeout int       // the session's own wait_timeout, s
	guarded bool      // that is another for the time being
	heard   time.Time // when the last statement that was answered began
	lost    error     // why the session is not to be used any more
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
	h := &hold{l: l, s: &Session{conn: conn}, closed: make(chan struct{}), heard: time.Now()}
	ctx, h.cancel = context.WithCancelCause(context.WithValue(ctx, holdKey{l}, h))
	h.keeper.Add(1)
	h.first = time.AfterFunc(guardAfter, h.keep)
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

// ask runs a statement of one row, within the time in which locks that are held count as held. mu is locked.
func (h *hold) ask(ctx context.Context, query string, into ...any) error {
	return h.within(ctx, func(ctx context.Context) error { return h.s.conn.QueryRowContext(ctx, query).Scan(into...) })
}

func (h *hold) within(ctx context.Context, run func(ctx context.Context) error) error {
	if h.lost != nil {
		return h.lost
	}
	if latest := h.heard.Add(h.l.timeout * 2 / 3); len(h.held) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, latest)
		defer cancel()
	}
	began := time.Now()
	err := run(ctx)
	if err == nil {
		h.heard = began
	}
	return err
}

// lose gives the session up. It may hold doubtful ones too. mu is locked.
func (h *hold) lose(point string, err error, doubtful ...lock) {
	if h.lost != nil {
		return
	}
	lost := &LostError{Keys: keys(h.held), Err: err}
	h.lost, h.doubt = lost, slices.Concat(h.held, doubtful)
	if len(h.held) > 0 {
		h.report(point, lost.Keys, err)
		h.cancel(lost)
	}
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
	if slices.Contains(h.held, lk) {
		return &NotAcquiredError{Key: lk.key, Holder: h.s.id, Own: true}
	}
	var (
		got    sql.NullString // drivers and proxies are known that make it text
		holder sql.NullInt64
	)
	err := h.ask(ctx, fmt.Sprintf("SELECT GET_LOCK('%[1]s', %[2]d), CONNECTION_ID(), @@wait_timeout, IS_USED_LOCK('%[1]s')", lk.name, seconds),
		&got, &h.s.id, &h.timeout, &holder)
	switch {
	case deadlock(err):
		return &NotAcquiredError{Key: lk.key, Deadlock: true}
	case misnamed(err):
		return fmt.Errorf("locks: take %q: the server refuses the name %s: %w", lk.key, lk.name, err)
	case err != nil:
		err = fmt.Errorf("locks: take %q: %w", lk.key, err)
	case got.String == "0":
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
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	h.mu.Lock()
	defer h.unlock()
	h.release(ctx, all)
}

// release releases them, or gives the session up. mu is locked.
func (h *hold) release(ctx context.Context, all []lock) {
	if len(all) == 0 || h.lost != nil {
		return
	}
	columns, answers, into := make([]string, len(all)), make([]sql.NullString, len(all)), make([]any, len(all))
	for i, lk := range all {
		columns[i], into[i] = "RELEASE_LOCK('"+lk.name+"')", &answers[i]
	}
	err := h.ask(ctx, "SELECT "+strings.Join(columns, ", "), into...)
	switch {
	case gone(err):
		h.lose(PointConnectionGone, err)
		return
	case err != nil:
		h.lose(PointReleaseFailed, err)
		return
	}
	for i, a := range answers {
		if a.String != "1" {
			h.lose(PointLockLost, fmt.Errorf("RELEASE_LOCK of %q answered %s", all[i].key, shown(a)))
			return
		}
	}
	h.held = slices.DeleteFunc(h.held, func(lk lock) bool { return slices.Contains(all, lk) })
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
