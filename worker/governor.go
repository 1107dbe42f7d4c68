package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/oncepost/oncepost/activities"
)

const (
	lookTime  = 2 * time.Second
	stopsCall = 3 * time.Second // one call of Stops
	quotaCall = 15 * time.Second

	trialMost = 2 * time.Minute  // of one process's trial without a success
	trialRest = 10 * time.Second // after that, for others to take it: several of their looks
)

// governor lets this process poll sends, or not: as the stops say that all processes share, and the sends of its own. The SDK's
// workers start once, so each time sending goes on there is a new one.
type governor struct {
	cfg     Config
	start   func(m activities.Mailer, slots int) (polling, error)
	holder  Holder
	scopes  []string // those that concern this process
	account Account  // nil where the Mailer tells nothing
	run     *unknowns
	wake    chan struct{}
	reports chan StopReport

	polls polling // nil while no sends are polled
	shift *shift

	unrecorded *Stop           // met, and not in the records yet
	told       map[string]Stop // by scope, those reported
	held       []string        // the scopes of which this process has the trial
	heldUntil  time.Time       // by then it is lost, unless it is renewed
	giveUp     time.Time       // by then it is given up, unless a mail is sent
	restUntil  time.Time       // before that this process takes no trial
	away       bool            // the records cannot be read
}

// polling is a worker of sends. Stop waits for those in flight.
type polling interface{ Stop() }

func newGovernor(ctx context.Context, cfg Config, start func(m activities.Mailer, slots int) (polling, error)) *governor {
	g := &governor{
		cfg: cfg, start: start, holder: newHolder(), scopes: []string{ScopeAll}, run: &unknowns{messages: map[string]bool{}},
		wake: make(chan struct{}, 1), reports: make(chan StopReport, 64), told: map[string]Stop{},
	}
	if a, ok := cfg.Activities.Mailer.(Account); ok {
		g.account = a
		call, cancel := context.WithTimeout(ctx, quotaCall)
		defer cancel()
		g.scopes = append(g.scopes, ScopeCredentials+a.Credentials(call))
	}
	return g
}

// govern runs until ctx ends. Sends in flight have finished then.
func (g *governor) govern(ctx context.Context, started func()) {
	var telling sync.WaitGroup
	telling.Go(g.tellAll)
	defer telling.Wait()
	defer close(g.reports)
	ticks := time.NewTicker(g.cfg.Look)
	defer ticks.Stop()
	for g.step(ctx); ; g.step(ctx) {
		if started != nil {
			started()
			started = nil
		}
		select {
		case <-ctx.Done():
			g.leave(context.WithoutCancel(ctx))
			return
		case <-ticks.C:
		case <-g.wake:
		}
	}
}

// leave ends in order: what is known is recorded, a trial given up for others to take.
func (g *governor) leave(ctx context.Context) {
	if g.cfg.Stops != nil {
		g.heed(ctx)
	}
	g.halt()
	g.release(ctx, g.held)
}

// step looks once, and lets the polling be as it must.
func (g *governor) step(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	if g.cfg.Stops == nil {
		g.poll(nil)
		return
	}
	g.heed(ctx)
	stops, err := g.standing(ctx)
	g.looked(err)
	switch {
	case err != nil:
		if len(g.held) > 0 && !time.Now().Before(g.heldUntil) { // another may have it by now
			g.halt()
			g.held = nil
		}
	case g.unrecorded != nil:
		g.halt()
	default:
		g.compare(stops)
		g.obey(ctx, stops)
	}
}

// obey polls sends, tries, or does neither.
func (g *governor) obey(ctx context.Context, stops []Stop) {
	switch {
	case len(stops) == 0:
		g.held = nil
		g.poll(nil)
	case g.fruitless():
		g.halt() // first: another may send as soon as it is released
		g.release(ctx, g.held)
		g.held, g.restUntil = nil, time.Now().Add(trialRest)
	case g.mayTry(ctx, stops):
		g.poll(stops)
	default:
		g.halt()
	}
}

// heed records what this process's own sends have met, and stops at once.
func (g *governor) heed(ctx context.Context) {
	if g.shift != nil {
		stop, sent := g.shift.outcome()
		if stop != nil {
			g.unrecorded = stop
			g.report(*stop)
		} else if sent {
			g.resume(ctx)
		}
	}
	if g.unrecorded == nil {
		return
	}
	err := g.record(ctx, *g.unrecorded)
	g.looked(err)
	g.halt()
	if err == nil {
		g.unrecorded = nil
	}
}

// record writes a stop that was met. In a trial of it the lease grows; trials of other scopes have taught nothing.
func (g *governor) record(ctx context.Context, s Stop) error {
	call, cancel := context.WithTimeout(ctx, stopsCall)
	defer cancel()
	if slices.Contains(g.held, s.Scope) {
		if err := g.cfg.Stops.Extend(call, s.Scope, g.holder, s.Class, s.Text); err != nil {
			return err
		}
	}
	if err := g.cfg.Stops.Stop(call, s.Scope, s.Class, s.Text); err != nil { // the trial may have been lost, and the stop ended
		return err
	}
	g.release(ctx, slices.DeleteFunc(slices.Clone(g.held), func(scope string) bool { return scope == s.Scope }))
	g.held = nil
	return nil
}

func (g *governor) standing(ctx context.Context) ([]Stop, error) {
	call, cancel := context.WithTimeout(ctx, stopsCall)
	defer cancel()
	return g.cfg.Stops.Standing(call, g.scopes...)
}

// looked notes whether the records can be used, and says each change once. Meanwhile everything stays as it is.
func (g *governor) looked(err error) {
	switch away := err != nil; {
	case away && !g.away:
		g.cfg.Logger.Error("the records of stops cannot be used; sending stays as it is", "sending", g.polls != nil, "error", err)
		g.away = true
	case !away && g.away:
		g.cfg.Logger.Info("the records of stops can be used again")
		g.away = false
	}
}

// poll polls sends: all, or in a trial of these stops one at a time.
func (g *governor) poll(trial []Stop) {
	if g.polls != nil && g.shift.trial == (trial != nil) {
		return
	}
	g.halt()
	s := &shift{
		mailer: g.cfg.Activities.Mailer, run: g.run, trial: trial != nil, scopeOf: g.scopeOf, heard: g.cfg.Answered,
		strict: slices.ContainsFunc(trial, func(s Stop) bool { return s.Class == ClassUnknownRun }),
		met: func() {
			select {
			case g.wake <- struct{}{}:
			default: // it will look already
			}
		},
	}
	slots, mailer := g.cfg.MaxSends, activities.Mailer(s)
	if s.trial {
		slots = 1
	}
	if g.cfg.Stops == nil {
		mailer = s.mailer
	}
	w, err := g.start(mailer, slots)
	if err != nil {
		g.cfg.Logger.Warn("sends cannot be polled, will try again", "error", err)
		return
	}
	g.polls, g.shift = w, s
	g.cfg.Logger.Debug("sends are polled", "at_once", slots)
}

// halt polls no sends any more, and waits for those in flight.
func (g *governor) halt() {
	if g.polls == nil {
		return
	}
	g.shift.end(nil)
	g.polls.Stop()
	g.polls, g.shift = nil, nil
	g.cfg.Logger.Debug("no sends are polled")
}

// scopeOf is the record's scope of a stop that this process has met.
func (g *governor) scopeOf(s activities.Scope) string {
	if s == activities.ScopeCredentials && len(g.scopes) > 1 {
		return g.scopes[1]
	}
	return ScopeAll
}

// compare reports the stops that are new to this process, and those that have ended.
func (g *governor) compare(stops []Stop) {
	for _, s := range stops {
		g.report(s)
	}
	for _, scope := range g.scopes {
		s, told := g.told[scope]
		if told && !slices.ContainsFunc(stops, func(s Stop) bool { return s.Scope == scope }) {
			delete(g.told, scope)
			g.send(StopReport{Stop: s, Resumed: true})
		}
	}
}

// report tells of a stop, once, and once more where it has another cause by now or a person has taken it over.
func (g *governor) report(s Stop) {
	told, known := g.told[s.Scope]
	if !known || told.Class != s.Class || told.By != s.By {
		g.told[s.Scope] = s
		g.send(StopReport{Stop: s})
	}
}

func (g *governor) send(r StopReport) {
	select {
	case g.reports <- r:
	default:
		g.cfg.Logger.Error("too many reports of stops wait; one is dropped", "scope", r.Scope, "class", r.Class, "resumed", r.Resumed)
	}
}

// tellAll gives the reports away one after the other. It must not hold up the governor: it may go over the network.
func (g *governor) tellAll() {
	for r := range g.reports {
		g.cfg.Report(r)
	}
}
