package worker

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepost/oncepost/activities"
)

// records is Stops in memory, on the test's clock. It can be away, or be full: then it takes no stops and no ends of them.
type records struct {
	mu   sync.Mutex
	away bool
	full bool
	rows map[string]*record
}

type record struct {
	Stop
	lease, trial time.Time // their ends
	holder       Holder
}

var errAway = errors.New("away")

const lease, trialTime = time.Minute, 10 * time.Second

// with runs f on the row of a scope; nil where there is none.
func (r *records) with(scope string, f func(row *record)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return errAway
	}
	f(r.rows[scope])
	return nil
}

func (r *records) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

func (r *records) setFull(full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = full
}

func (r *records) Standing(_ context.Context, scopes ...string) (all []Stop, err error) {
	for _, scope := range scopes {
		err = r.with(scope, func(row *record) {
			if row != nil {
				s := row.Stop
				s.Left = max(0, time.Until(row.lease))
				all = append(all, s)
			}
		})
	}
	return all, err
}

func (r *records) Stop(_ context.Context, scope, class, text string) error {
	var full error
	err := r.with(scope, func(row *record) {
		if r.full {
			full = errAway
		} else if row == nil {
			r.rows[scope] = &record{Stop: Stop{Scope: scope, Class: class, Text: text, Stops: 1}, lease: time.Now().Add(lease)}
		}
	})
	return errors.Join(err, full)
}

func (r *records) Try(_ context.Context, scope string, h Holder) (lasts time.Duration, err error) {
	err = r.with(scope, func(row *record) {
		free := row != nil && (row.holder == Holder{} || row.holder == h || !time.Now().Before(row.trial))
		if free && row.By == "" && !time.Now().Before(row.lease) {
			row.holder, row.trial, lasts = h, time.Now().Add(trialTime), trialTime
		}
	})
	return lasts, err
}

func (r *records) Extend(_ context.Context, scope string, h Holder, class, _ string) error {
	return r.with(scope, func(row *record) {
		if row != nil && row.holder == h {
			row.Class, row.holder, row.Stops = class, Holder{}, row.Stops+1
			row.lease = time.Now().Add(lease)
		}
	})
}

func (r *records) Release(_ context.Context, scope string, h Holder) error {
	return r.with(scope, func(row *record) {
		if row != nil && row.holder == h {
			row.holder = Holder{}
		}
	})
}

func (r *records) Resume(_ context.Context, scope string, h Holder) error {
	var full error
	err := r.with(scope, func(row *record) {
		if r.full {
			full = errAway
		} else if row != nil && row.holder == h {
			delete(r.rows, scope)
		}
	})
	return errors.Join(err, full)
}

// stops is how often in a row a scope was stopped; 0 where it is not.
func (r *records) stops(scope string) (n int) {
	_ = r.with(scope, func(row *record) { // it may be away, then there is nothing to see
		if row != nil {
			n = row.Stops
		}
	})
	return n
}

// process is a governor with polls of the test's own: the test sends when it likes, through the Mailer of the moment.
type process struct {
	t      *testing.T
	answer activities.Answer
	said   *strings.Builder
	end    func()

	mu      sync.Mutex
	mailer  activities.Mailer // nil while no sends are polled
	slots   int
	reports []string
}

func (p *process) Send(context.Context, activities.Mail) activities.Answer { return p.answer }
func (p *process) Quota(context.Context) (activities.Quota, error) {
	return activities.Quota{}, errAway
}
func (p *process) Credentials(context.Context) string { return "mine" }
func (p *process) set(m activities.Mailer, slots int) {
	p.mu.Lock()
	p.mailer, p.slots = m, slots
	p.mu.Unlock()
}
func (p *process) Stop() { p.set(nil, 0) }
func (p *process) start(m activities.Mailer, slots int) (polling, error) {
	p.set(m, slots)
	return p, nil
}

func newProcess(t *testing.T, r *records) *process {
	t.Helper()
	p := &process{t: t, said: &strings.Builder{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	g := newGovernor(ctx, Config{
		Activities: &activities.Activities{Mailer: p}, Stops: r, Look: lookTime, MaxSends: 100,
		Logger: slog.New(slog.NewTextHandler(p.said, nil)),
		Report: func(s StopReport) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reports = append(p.reports, map[bool]string{false: "stopped ", true: "resumed "}[s.Resumed]+s.Scope)
		},
	}, p.start)
	go func() {
		defer close(done)
		g.govern(ctx, nil)
	}()
	p.end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(p.end)
	synctest.Wait()
	return p
}

// sends sends a mail of a message that ends so.
func (p *process) sends(id string, a activities.Answer) activities.Answer {
	p.t.Helper()
	p.mu.Lock()
	m := p.mailer
	p.mu.Unlock()
	if m == nil {
		p.t.Fatal("no sends are polled")
	}
	p.answer = a
	got := m.Send(p.t.Context(), activities.Mail{MessageID: id})
	synctest.Wait()
	return got
}

func (p *process) polling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mailer != nil
}

// polls sees to it that so many sends may be in flight.
func (p *process) polls(slots int) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots != slots {
		p.t.Errorf("%d sends at once, want %d", p.slots, slots)
	}
}

func (p *process) told(want ...string) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.reports, want) {
		p.t.Errorf("reports %q, want %q", p.reports, want)
	}
}

func verdict(v activities.Verdict) activities.Answer {
	return activities.Answer{Verdict: v, Class: v.String(), Scope: activities.ScopeAccount}
}

func governed(t *testing.T, test func(t *testing.T, r *records)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &records{rows: map[string]*record{}}) })
}

// passes lets time pass, and one look more.
func passes(d time.Duration) {
	time.Sleep(d + lookTime)
	synctest.Wait()
}

// In a trial only a success resumes, only a stop ends it, and whatever else goes on with the next message.
func TestOnlyASuccessResumes(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		a, b := newProcess(t, r), newProcess(t, r)
		a.polls(100)
		a.sends("1", verdict(activities.VerdictStop))
		a.polls(0)
		passes(0)
		b.polls(0)
		passes(lease)
		try, other := a, b
		if a.slots == 0 {
			try, other = b, a
		}
		try.polls(1)
		other.polls(0)
		try.sends("2", verdict(activities.VerdictStop))
		if try.polls(0); r.stops(ScopeAll) != 2 {
			t.Errorf("%d stops", r.stops(ScopeAll))
		}
		passes(lease)
		if try, other = a, b; a.slots == 0 {
			try, other = b, a
		}
		for _, v := range []activities.Verdict{activities.VerdictLater, activities.VerdictNever, activities.VerdictUnknown} {
			try.sends("3", verdict(v))
			passes(0)
			try.polls(1)
			other.polls(0)
		}
		try.sends("4", verdict(activities.VerdictSent))
		try.polls(100)
		passes(0)
		other.polls(100)
		for _, p := range []*process{a, b} {
			p.told("stopped all", "resumed all")
		}
	})
}

// A trial whose mails are not sent goes to another process after two minutes, and a process that is alone takes it again.
func TestATrialWithoutASuccessIsGivenUp(t *testing.T) {
	for _, v := range []activities.Verdict{activities.VerdictLater, activities.VerdictNever} {
		t.Run(v.String(), func(t *testing.T) {
			governed(t, func(t *testing.T, r *records) {
				broken := newProcess(t, r)
				broken.sends("1", verdict(activities.VerdictStop))
				passes(lease)
				began := time.Now()
				tries := func() { // until it has given up
					for n := 0; broken.polling() && n < 100; n++ {
						broken.sends("2", verdict(v))
						passes(0)
					}
				}
				tries()
				if d := time.Since(began); d > trialMost || d < trialMost-2*lookTime {
					t.Errorf("given up after %s", d)
				}
				time.Sleep(trialRest - lookTime)
				broken.polls(0)
				passes(lookTime)
				broken.polls(1)

				healthy := newProcess(t, r)
				healthy.polls(0)
				tries()
				passes(0)
				healthy.polls(1)
				passes(trialRest)
				broken.polls(0)
				healthy.sends("3", verdict(activities.VerdictSent))
				passes(0)
				healthy.polls(100)
				broken.polls(100)
			})
		})
	}
}

// A trial that has succeeded is kept until that can be recorded.
func TestATrialWithASuccessIsKept(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		p.sends("1", verdict(activities.VerdictStop))
		passes(lease)
		r.setFull(true)
		p.sends("2", verdict(activities.VerdictSent))
		passes(trialMost)
		p.polls(1)
		r.setFull(false)
		passes(0)
		p.polls(100)
	})
}

// Several messages in a row of which nobody knows are a stop; one message, or a success in between, is none. In its trial one
// unknown is enough.
func TestARunOfUnknowns(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		unknown := verdict(activities.VerdictUnknown)
		for range 2 * unknownRun {
			p.sends("the same", unknown)
		}
		for i := range unknownRun - 2 {
			p.sends(string(rune('a'+i)), unknown)
		}
		p.sends("z", verdict(activities.VerdictSent))
		for i := range unknownRun {
			p.polls(100)
			p.sends(string(rune('a'+i)), unknown)
		}
		p.polls(0)
		p.told("stopped all")
		p.end()
		other := newProcess(t, r) // has seen no unknown itself
		passes(lease)
		other.polls(1)
		other.sends("f", unknown)
		if other.polls(0); r.stops(ScopeAll) != 2 {
			t.Errorf("%d stops", r.stops(ScopeAll))
		}
	})
}

// What has been polled when the stop comes goes back untried.
func TestAStopLetsNothingThrough(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		shift := p.mailer
		p.sends("1", verdict(activities.VerdictStop))
		p.answer = verdict(activities.VerdictSent)
		if a := shift.Send(t.Context(), activities.Mail{}); a.Verdict != activities.VerdictStop || a.Class != "held_back" {
			t.Errorf("%+v", a)
		}
	})
}

// While the records are away a process goes on as it was, and says so once. What it meets itself stops it at once, and is recorded
// afterwards; it does not resume before that.
func TestTheRecordsAreAway(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		r.setAway(true)
		passes(time.Hour)
		p.polls(100)
		p.sends("1", verdict(activities.VerdictStop))
		p.polls(0)
		passes(time.Hour)
		p.polls(0)
		if n := strings.Count(p.said.String(), "records of stops cannot be used"); n != 1 {
			t.Errorf("said %d times:\n%s", n, p.said)
		}
		r.setAway(false)
		passes(0)
		if p.polls(0); r.stops(ScopeAll) != 1 {
			t.Error("the stop is not recorded")
		}
		p.told("stopped all")
	})
}

// A stop that can be read nowhere, because it cannot be written, holds all the same.
func TestAStopThatCannotBeRecorded(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		r.setFull(true)
		p.sends("1", verdict(activities.VerdictStop))
		passes(time.Minute)
		p.polls(0)
		r.setFull(false)
		passes(0)
		if p.polls(0); r.stops(ScopeAll) != 1 {
			t.Error("the stop is not recorded")
		}
	})
}

// What a process has met last is recorded before it ends.
func TestWhatWasMetLastIsRecorded(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		r.setFull(true)
		p.sends("1", verdict(activities.VerdictStop))
		r.setFull(false)
		p.end()
		if r.stops(ScopeAll) != 1 {
			t.Error("the stop is not recorded")
		}
	})
}

// A process that starts while the records are away sends nothing.
func TestNothingIsSentBeforeTheFirstLook(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		r.setAway(true)
		p := newProcess(t, r)
		p.polls(0)
		r.setAway(false)
		passes(0)
		p.polls(100)
	})
}

// newTrial is a process that has met a stop, and has its trial now.
func newTrial(t *testing.T, r *records) *process {
	t.Helper()
	p := newProcess(t, r)
	p.sends("1", verdict(activities.VerdictStop))
	passes(lease)
	p.polls(1)
	return p
}

// A trial that cannot be renewed ends before another process may have it.
func TestATrialEndsWithoutTheRecords(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newTrial(t, r)
		r.setAway(true)
		passes(trialTime)
		p.polls(0)
		r.setAway(false)
		passes(0)
		p.polls(1)
	})
}

// A process that ends gives up its trial, for another to take at once.
func TestATrialIsGivenUpAtTheEnd(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newTrial(t, r)
		p.end()
		p.polls(0)
		newProcess(t, r).polls(1)
	})
}

// A process that two stops concern sends only when both leases have ended, and a trial of one stop that meets the other's cause
// leaves the first to others.
func TestTwoStops(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newTrial(t, r)
		p.sends("2", activities.Answer{Verdict: activities.VerdictStop, Class: "credentials", Scope: activities.ScopeCredentials})
		p.polls(0)
		own := ScopeCredentials + "mine"
		if got, want := []int{r.stops(ScopeAll), r.stops(own)}, []int{1, 1}; !reflect.DeepEqual(got, want) {
			t.Errorf("stops %v, want %v", got, want)
		}
		if lasts, err := r.Try(t.Context(), ScopeAll, Holder{9}); err != nil || lasts == 0 {
			t.Errorf("another may not try: %v, %v", lasts, err)
		}
		if err := r.Release(t.Context(), ScopeAll, Holder{9}); err != nil {
			t.Fatal(err)
		}
		passes(lease)
		p.polls(1)
		p.sends("3", verdict(activities.VerdictSent))
		p.polls(100)
		p.told("stopped all", "stopped "+own, "resumed all", "resumed "+own)
	})
}

// People hear of a stop again where it has another cause by now, or a person has taken it over; else once.
func TestAStopThatChanges(t *testing.T) {
	governed(t, func(t *testing.T, r *records) {
		p := newProcess(t, r)
		p.sends("1", verdict(activities.VerdictStop))
		passes(0)
		p.told("stopped all")
		for _, change := range []func(row *record){
			func(row *record) { row.Class = "sender_not_verified" }, func(row *record) { row.By = "someone" },
		} {
			if err := r.with(ScopeAll, change); err != nil {
				t.Fatal(err)
			}
			passes(0)
			passes(0)
		}
		p.told("stopped all", "stopped all", "stopped all")
	})
}
