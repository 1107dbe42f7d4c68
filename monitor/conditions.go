package monitor

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Names of the conditions. docs/runbook.md has a chapter for each.
const (
	CondDatabase      = "database_away"
	CondTemporal      = "temporal_away"
	CondNoRelay       = "no_relay"
	CondStalled       = "relay_stalled"
	CondMisconfigured = "relay_misconfigured"
	CondNotMoved      = "message_not_moved"
	CondNoWorker      = "no_worker"
	CondStopped       = "sending_stopped"
	CondOldestRow     = "oldest_row"
	CondFailedRows    = "failed_rows"
	CondFailed        = "workflows_failed"
	CondParked        = "parked_long"
	CondStuck         = "stuck"
	CondTasksFail     = "workflow_tasks_failing"
	CondUnreadable    = "state_unreadable"
	// CondLockLost is of what has happened: a named lock was lost. Record writes it.
	CondLockLost = "lock_lost"
)

// Fact is a condition as it shows in one State.
type Fact struct {
	Name, Subject string
	// For is for how long the state itself says that it has lasted; 0 where it does not say.
	For time.Duration
	// Threshold is how long it must have lasted before people are told.
	Threshold time.Duration
	// Rows says that For is by the times of rows: it counts no more than was looked.
	Rows   bool
	Detail string
}

// key tells facts apart.
type key struct{ name, subject string }

func (f Fact) key() key { return key{f.Name, f.Subject} }

func (k key) String() string {
	if k.subject == "" {
		return k.name
	}
	return k.name + "/" + k.subject
}

// kind is what there is to know of a condition, whoever sees it.
type kind struct {
	title string
	do    string // what to do first
	// causes explain it: while one of them holds it is not told as well.
	causes []string
	// What it is read from. Without that nobody knows whether it holds.
	database, outbox bool
	count            func(w *Workflows) *int64
	see              func(s *State, t Thresholds) []Fact
}

// forEver is for how long something has lasted of which there is no sign at all.
const forEver = time.Duration(math.MaxInt64)

var kinds = map[string]kind{
	CondDatabase: {
		title: "the database cannot be used", do: "Look at the database server and the network to it. Nothing is lost; everything goes on by itself.",
		see: func(s *State, t Thresholds) []Fact {
			return only(!s.Database.OK, Fact{Threshold: t.DatabaseAway, Detail: s.Database.Error})
		},
	},
	CondTemporal: {
		title: "Temporal cannot be reached", do: "Look at Temporal and the network to it. Messages wait in outbox_messages, and go on by themselves.",
		see: func(s *State, t Thresholds) []Fact {
			return only(!s.Temporal.OK, Fact{Threshold: t.TemporalAway, Detail: s.Temporal.Error})
		},
	},
	CondNoRelay: {
		title: "no relay is alive", do: "Start `oncepost relay`, or look why it does not stay up. Until then committed messages wait in outbox_messages.",
		database: true, causes: []string{CondDatabase}, see: seeNoRelay,
	},
	CondStalled: {
		title: "a relay lives, and does not read", do: "Look at its log, and for what locks the table outbox_messages.",
		database: true, causes: []string{CondDatabase, CondNoRelay}, see: seeStalled,
	},
	CondMisconfigured: {
		title: "the relay refuses to start anything", do: "Its configuration, or Temporal's, is wrong: the text says what. No message is lost or moved.",
		database: true, causes: []string{CondDatabase, CondTemporal, CondNoRelay}, see: reported("misconfigured"),
	},
	CondNotMoved: {
		title: "a message that can never start cannot be set aside", do: "Look at the rights of the relay's account on outbox_failed.",
		database: true, causes: []string{CondDatabase, CondNoRelay}, see: reported("message_not_moved"),
	},
	CondNoWorker: {
		title: "no worker is alive", do: "Start `oncepost worker`, or look why it does not stay up. Until then started messages wait in Temporal.",
		database: true, causes: []string{CondDatabase}, see: seeNoWorker,
	},
	CondStopped: {
		title: "sending has stopped", do: "`oncepost sending status` says what ends it. No mail is lost or failed: all wait.",
		database: true, causes: []string{CondDatabase}, see: seeStopped,
	},
	CondOldestRow: {
		title: "messages wait too long for their start", do: "See how many there are, and whether the relays keep up, on the status page.",
		database: true, outbox: true, causes: []string{CondDatabase, CondTemporal, CondNoRelay, CondStalled, CondMisconfigured}, see: seeOldest,
	},
	CondFailedRows: {
		title: "messages can never start", do: "`oncepost failed list` shows them and why; `oncepost failed retry` and `discard` end it.",
		database: true, outbox: true, causes: []string{CondDatabase}, see: func(s *State, t Thresholds) []Fact {
			return only(s.Outbox.Failed.Rows >= int64(t.Failed), Fact{Detail: fmt.Sprintf("%s in outbox_failed", s.Outbox.Failed.of("message"))})
		},
	},
	CondFailed: {
		title: "workflows have failed for good", do: "`oncepost failed list` shows them, `oncepost explain` why, and `oncepost failed retry` runs them again.",
		count: ofFailed, causes: []string{CondTemporal}, see: counted(ofFailed, "failed in the last hour"),
	},
	CondParked: {
		title: "parked messages wait for a person", do: "Nobody knows whether these mails were sent. `oncepost resolve` says what is true; the workflow's page says what is at stake.",
		count: ofParkedLong, causes: []string{CondTemporal}, see: counted(ofParkedLong, "parked too long"),
	},
	CondStuck: {
		title: "messages are stuck between their start and their mail", do: "`oncepost explain MESSAGE-ID` says what one of them is at.",
		count: ofStuck, causes: []string{CondTemporal, CondNoWorker, CondStopped, CondTasksFail},
		see: func(s *State, t Thresholds) []Fact { // each has lasted so long already; after what explains it they have as long again to pass
			facts := counted(ofStuck, "should have been sent long ago")(s, t)
			for i := range facts {
				facts[i].For, facts[i].Threshold = t.Stuck, t.Stuck
			}
			return facts
		},
	},
	CondTasksFail: {
		title: "workers fail at the code of workflows", do: "None knows the event type, or its code has changed in a way that does not fit what runs. The workers' log says which.",
		count: ofTasksFail, causes: []string{CondTemporal, CondNoWorker},
		see: counted(ofTasksFail, "whose tasks fail again and again"),
	},
	CondUnreadable: {
		title: "a part of the state cannot be read", do: "What it would show is told to nobody. `oncepost doctor` says whether a table or a right is missing; the text says what else.",
		database: true, causes: []string{CondDatabase, CondStalled}, see: seeUnreadable,
	},
	CondLockLost: {
		title: "a named lock was lost", do: "What ran under it may have run twice: look at what it did. docs/locks.md says how it can happen.",
		see: func(*State, Thresholds) []Fact { return nil }, // it happens; see Record
	},
}

// order is that of kinds wherever they are listed: causes first.
var order = []string{
	CondDatabase, CondTemporal, CondNoRelay, CondStalled, CondMisconfigured, CondNotMoved, CondNoWorker, CondStopped, CondOldestRow,
	CondFailedRows, CondFailed, CondParked, CondTasksFail, CondStuck, CondUnreadable, CondLockLost,
}

// Facts are the conditions that show in a state, causes first. unknown are the names of those that cannot be seen in it.
func Facts(s *State, t Thresholds) (facts []Fact, unknown map[string]bool) {
	unknown = map[string]bool{}
	for _, name := range order {
		k := kinds[name]
		if k.unknown(s) {
			unknown[name] = true
			continue
		}
		if name == CondTemporal && s.Temporal == (Part{}) {
			unknown[name] = true // nobody has asked
			continue
		}
		for _, f := range k.see(s, t) {
			f.Name = name
			facts = append(facts, f)
		}
	}
	return facts, unknown
}

func (k kind) unknown(s *State) bool {
	return k.database && !s.Database.OK || k.outbox && s.Outbox.Error != "" || k.count != nil && (!s.Temporal.OK || k.count(&s.Workflows) == nil)
}

// caused reports whether one of the facts explains a condition.
func caused(name string, facts []Fact) bool {
	return slices.ContainsFunc(facts, func(f Fact) bool { return slices.Contains(kinds[name].causes, f.Name) })
}
