package activities

import (
	"math"
	"time"
)

// Verdict is what a try of a send has come to. It is always one of five.
type Verdict uint8

// The verdicts.
const (
	VerdictSent    Verdict = iota // the provider has accepted the mail
	VerdictLater                  // not sent; the same may succeed later
	VerdictNever                  // not sent, and this mail never will be
	VerdictStop                   // not sent, and no other mail either until somebody or something puts it right
	VerdictUnknown                // perhaps sent: the request left and no answer could be read
)

// String returns the word that logs and metrics have for it.
func (v Verdict) String() string {
	return [...]string{"sent", "later", "never", "stop", "unknown"}[v]
}

// Scope says whom a VerdictStop concerns.
type Scope string

// The scopes.
const (
	ScopeCredentials Scope = "credentials" // the workers that share these credentials
	ScopeAccount     Scope = "account"     // all
	ScopeQuota       Scope = "quota"       // all, until the day's quota is renewed
	ScopeSender      Scope = "sender"      // all with this sender
)

// ClassDailyQuota is the class of the stop that ends when the provider's quota of the day is back.
const ClassDailyQuota = "daily_quota"

// Quota is what the provider lets the account send. Nothing in it says that sending is allowed at all.
type Quota struct {
	PerSecond   float64 // negative: no limit
	PerDay      float64 // in 24 hours; negative: no limit
	SentLastDay float64 // in the last 24 hours
}

// Of the quota of the day so much is kept for alerts: a share, within bounds.
const (
	reserveShare = 0.01
	reserveLeast = 1
	reserveMost  = 50
)

// LeftToday is how many mails may be sent still, without the reserve for alerts.
func (q Quota) LeftToday() float64 {
	if q.PerDay < 0 {
		return math.Inf(1)
	}
	return q.PerDay - q.SentLastDay - min(max(q.PerDay*reserveShare, reserveLeast), reserveMost)
}

// Answer is what a Mailer made of a try.
type Answer struct {
	Verdict Verdict
	// ProviderID is the provider's ID of the mail. Only with VerdictSent.
	ProviderID string
	// Class says in a word why it was not sent, such as throttled. It holds no address.
	Class string
	// Scope of a VerdictStop.
	Scope Scope
	// Wait is how long at least to wait before the next try. Zero: as the retry policy says.
	Wait time.Duration
	// Text says it in a sentence, for a person. It holds no address.
	Text string
	// err is what Once returns of a VerdictLater, instead of Class and Text.
	err error
}
