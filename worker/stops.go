package worker

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/oncepost/oncepost/activities"
)

// Stops keeps the stops of sending for all worker processes together. All times in it are of one clock, the database's.
type Stops interface {
	// Standing returns the stops there are of these scopes, in the order of their names; of all scopes where none is given.
	Standing(ctx context.Context, scopes ...string) ([]Stop, error)
	// Stop makes a stop with the first lease. One of that scope which is there already stays as it is.
	Stop(ctx context.Context, scope, class, text string) error
	// Try makes holder the only one who may try whether a stop is over, and returns for how long; zero where the lease has not
	// ended, a person has stopped it, or another has the trial. Repeated, it renews.
	Try(ctx context.Context, scope string, holder Holder) (time.Duration, error)
	// Extend ends holder's trial with a stop again: the lease begins anew, and is longer. It changes nothing where the trial is
	// not holder's any more.
	Extend(ctx context.Context, scope string, holder Holder, class, text string) error
	// Release ends holder's trial, with nothing learned.
	Release(ctx context.Context, scope string, holder Holder) error
	// Resume ends the stop, where holder has its trial.
	Resume(ctx context.Context, scope string, holder Holder) error
}

// Holder tells one worker process from another.
type Holder [16]byte

func newHolder() (h Holder) {
	rand.Read(h[:]) // never fails (documented)
	return h
}

// Scopes of a Stop.
const (
	ScopeAll = "all"
	// ScopeCredentials comes before what Account.Credentials returns: the stop concerns the workers that have the same.
	ScopeCredentials = "credentials:"
)

// Classes of a Stop that are not the provider's answers.
const (
	// ClassUnknownRun is a run of sends of which nobody knows whether they were sent.
	ClassUnknownRun = "unknown_run"
	// ClassPerson is a stop by `oncepost sending stop`.
	ClassPerson = "person"
)

// Stop is one stop of sending.
type Stop struct {
	Scope string
	// Class says in a word why, and Text in a sentence. Neither holds an address.
	Class, Text string
	// By is the person who stopped it; empty where a worker did. Only a person ends it then.
	By    string
	Since time.Time
	// Left is what is left of the lease; zero once a trial may begin.
	Left time.Duration
	// Stops is how many stops there were in a row.
	Stops int
	// Trial says that a worker is trying.
	Trial bool
}

// StopReport says that sending has stopped in this process, or goes on.
type StopReport struct {
	Stop
	Resumed bool
}

// Account is what a Mailer may tell of the account behind it.
type Account interface {
	// Quota asks the provider. It may be refused where sending is allowed, and answer where sending is not.
	Quota(ctx context.Context) (activities.Quota, error)
	// Credentials tells credentials apart, in at most 64 ASCII characters that give nothing away.
	Credentials(ctx context.Context) string
}
