package activities

import (
	"context"
	"errors"
	"time"
)

// Ledger remembers which effects of a message have happened, so that none happens twice: an attempt claims before the
// effect, and records the outcome after it. The claim's statement is the one place where two attempts meet.
type Ledger interface {
	// Claim asks for leave to try. Only an Entry that is StandingClaimed gives it.
	Claim(ctx context.Context, c Claim) (Entry, error)
	// Record says what became of a claimed try. It may be repeated. ErrSuperseded: the claim had expired, and another
	// attempt has claimed since.
	Record(ctx context.Context, key Key, token Token, o Outcome) error
	// Settle says that an effect has happened, whatever its row says. It may be repeated. ErrSuperseded: there is no row, or an
	// attempt is under way.
	Settle(ctx context.Context, key Key) error
	// Authorise lets an effect that is unknown be tried once more, as this generation. It may be repeated. ErrSuperseded: it
	// is not unknown, or another generation is due.
	Authorise(ctx context.Context, key Key, generation int) error
}

// Key names one effect of one message. It holds neither the run nor the attempt: both change when a workflow is reset.
type Key struct {
	MessageID string
	Step      string   // 1 to 64 bytes; one name for each effect of a workflow
	Recipient [32]byte // a hash of the canonical address, which is empty for an effect of Once
}

// Token tells one claim from another.
type Token [16]byte

// Claim asks for leave to try an effect once.
type Claim struct {
	Key
	Token Token
	// Content is a hash of what is to be done. The same key for something else is refused.
	Content [32]byte
	// Generation is 0, and one more for each authorised repetition of what may have happened already.
	Generation int
	// For is how long the try may take. After that, by the database's clock, whether it happened is unknown.
	For time.Duration
}

// Standing is how an effect stands in the ledger.
type Standing uint8

// The standings.
const (
	StandingClaimed Standing = iota // leave is given to this claim
	StandingBusy                    // another attempt may be at it
	StandingFree                    // it has not happened, and may be tried
	StandingDone                    // it has happened
	StandingRefused                 // it has not happened and never will
	StandingUnknown                 // it may have happened
	StandingDiffers                 // the key was used for something else
)

// String returns the word that the ledger's table has for it.
func (s Standing) String() string {
	return [...]string{"claimed", "busy", "free", "done", "refused", "unknown", "differs"}[s]
}

// Entry is what the ledger answers to a claim.
type Entry struct {
	Standing Standing
	// Wait is how long another's claim lasts still. Only with StandingBusy.
	Wait time.Duration
	// Next is the generation that a repetition must ask for. Only with StandingUnknown.
	Next int
	// Authorised says that the repetition has been let, and has certainly not happened yet. Only with StandingUnknown.
	Authorised bool
	// ResultID and ErrorClass are what was recorded last.
	ResultID, ErrorClass string
}

// Outcome is what became of a try: StandingFree, StandingDone, StandingRefused or StandingUnknown.
type Outcome struct {
	Standing Standing
	ResultID string // the provider's ID of what was done; at most 255 printable ASCII characters
	// ErrorClass says in a word why it was not; at most 64 characters of ASCII, and no address.
	ErrorClass string
}

// ErrSuperseded says that a claim had expired and another attempt has claimed since: what the attempt did may be done again.
var ErrSuperseded = errors.New("the ledger stands otherwise: another attempt has claimed since")
