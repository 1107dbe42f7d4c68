package sesstandin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// AnyAction makes a fault apply to every action, those that only ask included.
const AnyAction = "*"

// Fault is a scripted failure. It needs one effect; Delay and AnswerDelay go with any.
// The first injected fault that applies to a request is the one that fires.
type Fault struct {
	// Action is SendEmail, SendRawEmail, GetSendQuota, GetAccountSendingEnabled, GetIdentityVerificationAttributes,
	// DescribeConfigurationSet or [AnyAction]. Empty: both sends.
	Action string `json:"action,omitempty"`

	// Match selects mails whose message ID (decoded from the tag message_id) is exactly this, or
	// one of whose recipients contains it. Empty: every mail.
	Match string `json:"match,omitempty"`

	// After is how many matching requests pass before the fault begins. Default: 0.
	After int `json:"after,omitempty"`

	// Times is how often the fault fires before it is gone. Default: 0, until cleared.
	Times int `json:"times,omitempty"`

	// Error refuses the request with this answer; the mail is not accepted.
	Error *APIError `json:"error,omitempty"`

	// Delay passes before the request is decided. A client that leaves meanwhile has sent nothing.
	Delay Duration `json:"delay,omitempty"`

	// AnswerDelay passes between accepting the mail and answering: a client that times out has
	// sent its mail all the same.
	AnswerDelay Duration `json:"answer_delay,omitempty"`

	// DropBefore closes the connection without an answer; the mail is not accepted.
	DropBefore bool `json:"drop_before,omitempty"`

	// DropAfter accepts the mail, then closes the connection without an answer.
	DropAfter bool `json:"drop_after,omitempty"`

	// Garbage accepts the mail, then answers 200 with a body that cannot be read.
	Garbage bool `json:"garbage,omitempty"`

	// Negative makes GetAccountSendingEnabled say no, and GetIdentityVerificationAttributes that nothing is verified yet. It
	// changes no other answer.
	Negative bool `json:"negative,omitempty"`

	// MaxPerSecond enforces a sending rate in recipients per second over all mails of the account.
	// GetSendQuota reports it. Default: 0, no such effect.
	MaxPerSecond float64 `json:"max_per_second,omitempty"`

	// MaxPerDay enforces a daily quota in recipients, counting what was sent before the fault.
	// GetSendQuota reports it. Default: 0, no such effect.
	MaxPerDay float64 `json:"max_per_day,omitempty"`

	// QuotaExhausted refuses sends as if the daily quota were used up; GetSendQuota agrees.
	QuotaExhausted bool `json:"quota_exhausted,omitempty"`
}

// limit returns the quota that the fault enforces, if that is its effect.
func (f Fault) limit() (limit, bool) {
	l := limit{perSecond: f.MaxPerSecond, perDay: f.MaxPerDay, exhausted: f.QuotaExhausted}
	return l, l != limit{}
}

// normalized fills the defaults of the error answer and refuses what makes no sense.
func (f Fault) normalized() (Fault, error) {
	if f.Action != "" && f.Action != AnyAction && !slices.Contains(actions, f.Action) {
		return f, fmt.Errorf("fault action %q: use %s, %q or nothing", f.Action, strings.Join(actions, ", "), AnyAction)
	}
	if f.After < 0 || f.Times < 0 || f.Delay < 0 || f.AnswerDelay < 0 || f.MaxPerDay < 0 {
		return f, errors.New("fault: numbers must not be negative")
	}
	if f.MaxPerSecond != 0 && f.MaxPerSecond < minRate {
		return f, fmt.Errorf("fault max_per_second %v: at least one a minute (%.4f)", f.MaxPerSecond, minRate)
	}
	if err := f.oneEffect(); err != nil {
		return f, err
	}
	if f.Error != nil {
		e, err := f.Error.normalized()
		f.Error = &e
		return f, err
	}
	return f, nil
}

// asks reports whether the fault is one of an action that only asks.
func (f Fault) asks() bool { return f.Action != "" && f.Action != AnyAction && !sends(f.Action) }

func sends(action string) bool { return action == actionSendEmail || action == actionSendRawEmail }

// effects counts the effects of which a fault may have one.
func (f Fault) effects() int {
	n := 0
	_, limits := f.limit()
	for _, has := range []bool{f.Error != nil, f.DropBefore, f.DropAfter, f.Garbage, f.Negative, limits} {
		if has {
			n++
		}
	}
	return n
}

func (f Fault) hasEffect() bool {
	return f.effects() > 0 || f.Delay != 0 || f.AnswerDelay != 0
}

func (f Fault) oneEffect() error {
	effects := f.effects()
	_, limits := f.limit()
	switch {
	case effects > 1:
		return errors.New("fault: give one of error, drop_before, drop_after, garbage, negative, and a limit")
	case f.Negative && f.Action != actionGetSendingEnabled && f.Action != actionGetIdentities:
		return fmt.Errorf("fault: only %s and %s have a negative answer", actionGetSendingEnabled, actionGetIdentities)
	case limits && (f.asks() || f.Delay > 0 || f.AnswerDelay > 0):
		return errors.New("fault: a limit refuses sends, at once")
	case !f.hasEffect():
		return errors.New("fault: it has no effect")
	}
	return nil
}

func (e APIError) normalized() (APIError, error) {
	if e.Code == "" {
		return e, errors.New("fault error: the code is missing")
	}
	if e.Status == 0 {
		e.Status = http.StatusBadRequest
		if e.Type == "Receiver" {
			e.Status = http.StatusInternalServerError
		}
	}
	if e.Status < 400 || e.Status > 599 {
		return e, fmt.Errorf("fault error: HTTP status %d is no error", e.Status)
	}
	if e.Type == "" {
		e.Type = "Sender"
		if e.Status >= 500 {
			e.Type = "Receiver"
		}
	}
	if e.Type != "Sender" && e.Type != "Receiver" {
		return e, fmt.Errorf("fault error: type %q is neither Sender nor Receiver", e.Type)
	}
	return e, nil
}

// Duration is a time.Duration that is written "1m30s" in JSON.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration %s: give a string such as \"2s\"", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: %w", s, err)
	}
	*d = Duration(v)
	return nil
}
