package monitor

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Notice is what people are told of a condition: that it has begun, or that it is over.
type Notice struct {
	Name, Subject string
	// Title says it in a line, Detail what was seen, and Do what to do first.
	Title, Detail, Do string
	Over              bool
	// Lasted is for how long, as far as is known.
	Lasted              time.Duration
	Database, Namespace string
}

// teller tells people of each condition once: with the others by the table ops_conditions, and by itself where there is no
// database to agree by.
type teller struct {
	book   *book
	send   func(ctx context.Context, n Notice) error // nil: tells nobody
	logger *slog.Logger
	clear  time.Duration
	under  sync.WaitGroup

	logged map[key]Condition // those that the log has
	idle   map[key]time.Time // in the table, and seen by nobody since
	raised map[key]bool      // were in the table when it could last be read

	told, fails atomic.Int64 // notices

	mu    sync.Mutex
	busy  map[key]bool      // being told
	alone map[key]time.Time // told by this process alone, and since when it held
	vain  map[key]time.Time // when nobody was reached
	said  map[saying]bool   // people know, and it could not be written down
}

// saying is one thing to tell.
type saying struct {
	key
	over bool
}

func newTeller(cfg Config) *teller {
	t := &teller{
		book: &book{db: cfg.DB, id: newID()}, send: cfg.Tell, logger: cfg.Logger, clear: max(cfg.Thresholds.Clear, 2*cfg.Thresholds.BeatEvery()),
		logged: map[key]Condition{}, idle: map[key]time.Time{}, raised: map[key]bool{},
		busy: map[key]bool{}, alone: map[key]time.Time{}, vain: map[key]time.Time{}, said: map[saying]bool{},
	}
	return t
}

func (c Condition) key() key { return key{c.Name, c.Subject} }
func (r Raised) key() key    { return key{r.Name, r.Subject} }

func (t *teller) tell(ctx context.Context, s *State, m *memory) {
	t.log(s.Conditions)
	if t.send == nil {
		return
	}
	if !s.Database.OK {
		t.byItself(ctx, s, m)
		return
	}
	t.raised = map[key]bool{}
	for _, r := range s.Raised {
		t.raised[r.key()] = true
	}
	for _, c := range s.Conditions {
		t.begin(ctx, s, c)
	}
	for _, r := range s.Raised {
		t.end(ctx, s, r, m)
	}
	t.endAlone(ctx, s, m)
}

// log writes what has begun and what is over, as this process sees it.
func (t *teller) log(conditions []Condition) {
	for _, c := range conditions {
		if _, known := t.logged[c.key()]; !known {
			t.logged[c.key()] = c
			t.logger.Error("condition", "condition", c.Name, "subject", c.Subject, "title", c.Title, "detail", c.Detail)
		}
	}
	for k, c := range t.logged {
		if !slices.ContainsFunc(conditions, func(c Condition) bool { return c.key() == k }) {
			delete(t.logged, k)
			t.logger.Info("condition over", "condition", c.Name, "subject", c.Subject, "title", c.Title)
		}
	}
}

// begin tells of a condition where nobody has, or is about to.
func (t *teller) begin(ctx context.Context, s *State, c Condition) {
	k := c.key()
	i := slices.IndexFunc(s.Raised, func(r Raised) bool { return r.key() == k })
	var mine bool
	var err error
	switch {
	case t.isBusy(k): // and must not keep others from it for longer
		return
	case i < 0:
		mine, err = t.book.raise(ctx, c)
	case !s.Raised[i].Told && !s.Raised[i].telling:
		mine, err = t.book.instead(ctx, k, false)
	}
	switch {
	case t.failed(err):
		t.beginAlone(ctx, s, c) // who can read the table and not write it must not be silent
	case !mine:
	case t.toldAlone(k):
		t.failed(t.book.told(ctx, k))
	default:
		t.say(ctx, k, s.notice(c, false), func(ctx context.Context) error { return t.book.told(ctx, k) })
	}
}

// end tells that a condition is over, once neither this process nor any other that lives has seen it for a while.
func (t *teller) end(ctx context.Context, s *State, r Raised, m *memory) {
	k := r.key()
	switch {
	case r.event && !r.Told && !r.telling:
		t.take(ctx, k, false, func() {
			t.say(ctx, k, s.noticeOf(r, false), func(ctx context.Context) error { return t.book.told(ctx, k) })
		})
		return
	case r.event && !r.over, !r.event && (m.holds(k) || s.seenBy(k)):
		delete(t.idle, k)
		return
	}
	since, known := t.idle[k]
	if !known {
		t.idle[k], since = time.Now(), time.Now()
	}
	if !r.event && time.Since(since) < t.clear || r.telling {
		return
	}
	t.take(ctx, k, r.Told, func() {
		if !r.Told { // it was over before anybody could be told
			t.failed(t.book.drop(ctx, k))
			return
		}
		t.say(ctx, k, s.noticeOf(r, true), func(ctx context.Context) error { return t.book.drop(ctx, k) })
	})
}

func (t *teller) take(ctx context.Context, k key, told bool, then func()) {
	if t.isBusy(k) {
		return
	}
	if mine, err := t.book.instead(ctx, k, told); !t.failed(err) && mine {
		then()
	}
}

// failed logs an error of the table: whoever looks next does it instead.
func (t *teller) failed(err error) bool {
	if err != nil {
		t.logger.Warn("what people are told of cannot be written down, will try again", "error", err)
	}
	return err != nil
}

// seenBy reports whether another process that lives says that a condition holds.
func (s *State) seenBy(k key) bool {
	return slices.ContainsFunc(s.Processes, func(p Process) bool { return p.Alive && slices.Contains(p.Sees, k.String()) })
}

// again is when what could not be told is tried again.
const again = 30 * time.Second

// byItself tells, with no database to agree by, of what only then must be told at once; of the rest people know, or hear later.
func (t *teller) byItself(ctx context.Context, s *State, m *memory) {
	for _, c := range s.Conditions {
		if c.Name == CondDatabase || c.Name == CondTemporal && !t.raised[c.key()] {
			t.beginAlone(ctx, s, c)
		}
	}
	t.endAlone(ctx, s, m)
}

// beginAlone tells of a condition with nobody to agree with.
func (t *teller) beginAlone(ctx context.Context, s *State, c Condition) {
	k := c.key()
	if t.toldAlone(k) || t.inVain(k) {
		return
	}
	since := time.Now().Add(-seconds(c.For))
	t.say(ctx, k, s.notice(c, false), func(context.Context) error { t.note(k, since); return nil })
}

// endAlone tells that what this process has told alone is over, unless it is in the table by now.
func (t *teller) endAlone(ctx context.Context, s *State, m *memory) {
	t.mu.Lock()
	over := map[key]time.Time{}
	for k, since := range t.alone {
		if !m.holds(k) && time.Since(t.vain[k]) > again {
			over[k] = since
		}
	}
	t.mu.Unlock()
	for k, since := range over {
		if t.raised[k] {
			t.forget(k)
			continue
		}
		c := Condition{Name: k.name, Subject: k.subject, For: time.Since(since).Seconds()}
		t.say(ctx, k, s.notice(c, true), func(context.Context) error { t.forget(k); return nil })
	}
}

func (t *teller) note(k key, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone[k] = since
}

func (t *teller) forget(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.alone, k)
}

func (t *teller) toldAlone(k key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, told := t.alone[k]
	return told
}

func (t *teller) isBusy(k key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy[k]
}

// inVain reports whether nobody was reached a short while ago.
func (t *teller) inVain(k key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.vain[k]) < again
}

// say tells, beside the looking: SES may hang. then is done once somebody was reached; where nobody was, it is tried again later.
func (t *teller) say(ctx context.Context, k key, n Notice, then func(ctx context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[k] {
		return
	}
	t.busy[k] = true
	what := saying{k, n.Over}
	known := t.said[what]
	ctx = context.WithoutCancel(ctx) // a stop must not swallow it
	t.under.Go(func() {
		var err error
		if !known {
			err = t.send(ctx, n)
		}
		sent := err == nil
		if sent {
			err = then(ctx)
		}
		t.done(what, sent, err)
		if err != nil {
			t.logger.Error("a condition could not be told, or that it was told not be written down; will try again", "condition", n.Name, "subject", n.Subject,
				"over", n.Over, "told", sent, "after", again, "error", err)
		}
	})
}

// done notes how a telling has ended. What people know already is not told again because it could not be written down.
func (t *teller) done(what saying, sent bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, what.key)
	delete(t.vain, what.key)
	delete(t.said, what)
	if sent { // they know of the other no more: what has begun anew must be over anew
		delete(t.said, saying{what.key, !what.over})
	}
	switch {
	case !sent:
		t.vain[what.key] = time.Now()
		t.fails.Add(1)
	case err != nil:
		t.said[what] = true
	default:
		t.told.Add(1)
	}
}

// wait waits for what is being told; each is bounded by the Alerter's time-out.
func (t *teller) wait() { t.under.Wait() }

func (s *State) notice(c Condition, over bool) Notice {
	return Notice{
		Name: c.Name, Subject: c.Subject, Title: kinds[c.Name].title, Detail: c.Detail, Do: kinds[c.Name].do, Over: over,
		Lasted: seconds(c.For), Database: s.Database.Name, Namespace: s.Temporal.Name,
	}
}

func (s *State) noticeOf(r Raised, over bool) Notice {
	return s.notice(Condition{Name: r.Name, Subject: r.Subject, Detail: r.Detail, For: s.At.Sub(r.Since).Seconds()}, over)
}
