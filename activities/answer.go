package activities

import "time"

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
