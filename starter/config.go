package starter

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config of a Relay. The zero value is right for almost everybody: sizes find their own values, and what can be set here
// are their bounds.
type Config struct {
	// MaxStarts bounds the starts in flight. Default 1,000.
	MaxStarts int
	// MaxPage bounds the rows of a lane that wait for their start in this process, and so those that one read asks for. It
	// also bounds how many others can start before an express row that has just been committed. Default 800.
	MaxPage int
	// MaxDelete bounds the rows that one delete takes. Default and maximum 1,000.
	MaxDelete int
	// MaxBytes bounds the payloads of large rows (over 8 KiB) in memory. Default 16 MiB; at least 2 MiB.
	MaxBytes int64
	// MaxPoll bounds the pause between reads when nothing comes. Default 150 ms; at most 5 s.
	MaxPoll time.Duration
	// StartTimeout is the deadline of one start. Default 10 s.
	StartTimeout time.Duration
	// Grace is how long a stop waits for starts in flight. Default 15 s; at most 25 s.
	Grace time.Duration
	// FixedSizes uses MaxStarts and MaxPage as they are, instead of as bounds for what the relay finds by itself. It is
	// there to measure against.
	FixedSizes bool
	// Rebind accepts the namespace that the starter reaches now as the outbox's own, once, at start-up.
	Rebind bool
	// Report hears of conditions that a person should know. It is called from several goroutines and must not block.
	// Default: they are logged.
	Report func(Condition)
	// Logger. Default slog.Default().
	Logger *slog.Logger

	minBackoff, maxBackoff time.Duration // between attempts after a failure
	tick                   time.Duration // between looks at ownership
	sessionTimeout         time.Duration // the server ends an owner's session after this long without a tick
	callTimeout            time.Duration // of one database call
	linger                 time.Duration // how long a started row may wait for company before it is deleted
	suspicion              time.Duration // first pause before a refused message is tried again
}

// maxGrace stays below the session's time-out, so that a stopping relay still owns its shards while it drains.
const maxGrace = 25 * time.Second

func (c Config) withDefaults() (Config, error) {
	c.MaxStarts = or(c.MaxStarts, 1000)
	c.MaxPage = or(c.MaxPage, 800)
	c.MaxDelete = or(c.MaxDelete, 1000)
	c.MaxBytes = or(c.MaxBytes, 16<<20)
	c.MaxPoll = or(c.MaxPoll, 150*time.Millisecond)
	c.StartTimeout = or(c.StartTimeout, 10*time.Second)
	c.Grace = or(c.Grace, 15*time.Second)
	c.Logger = or(c.Logger, slog.Default())
	c.minBackoff = or(c.minBackoff, 100*time.Millisecond)
	c.maxBackoff = or(c.maxBackoff, 10*time.Second)
	c.tick = or(c.tick, 250*time.Millisecond)
	c.sessionTimeout = or(c.sessionTimeout, 30*time.Second)
	c.callTimeout = or(c.callTimeout, 5*time.Second)
	c.linger = or(c.linger, 250*time.Millisecond)
	c.suspicion = or(c.suspicion, time.Second)
	if c.Report == nil {
		c.Report = c.log
	}
	return c, c.validate()
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("starter: "+format, args...))
		}
	}
	check(c.MaxStarts > 0, "MaxStarts is %d, must be positive", c.MaxStarts)
	check(c.MaxPage > 0, "MaxPage is %d, must be positive", c.MaxPage)
	check(c.MaxDelete > 0 && c.MaxDelete <= 1000, "MaxDelete is %d, must be 1 to 1000", c.MaxDelete)
	check(c.MaxBytes >= 2<<20, "MaxBytes is %d, must be at least 2 MiB: one message may have 1 MiB", c.MaxBytes)
	check(c.MaxPoll > 0 && c.MaxPoll <= 5*time.Second, "MaxPoll is %s, must be positive and at most 5s", c.MaxPoll)
	check(c.StartTimeout > 0, "StartTimeout is %s, must be positive", c.StartTimeout)
	check(c.Grace > 0 && c.Grace <= maxGrace, "Grace is %s, must be positive and at most %s", c.Grace, maxGrace)
	return errors.Join(errs...)
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
