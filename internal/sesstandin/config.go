package sesstandin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
)

// messageIDPlaceholder is what a WorkflowURL has in place of the message ID.
const messageIDPlaceholder = "{message_id}"

// minRate is the lowest enforceable sending rate: one mail a minute.
const minRate = 1.0 / 60

// Config says how a stand-in behaves. The zero value is useful: in memory, no limits.
type Config struct {
	// Dir is the folder that accepted mails are kept in. Empty (the default): memory only.
	// The folder is made when missing. One stand-in at a time may use it.
	Dir string

	// WorkflowURL links a mail to its workflow in Temporal's web UI. "{message_id}" stands for
	// the path-escaped message ID. Empty (the default): no link.
	WorkflowURL string

	// Quota is what GetSendQuota answers, and what is enforced if Quota.Enforce is set.
	Quota Quota

	// MaxMails and MaxBytes bound what is kept: the oldest mails are dropped beyond either.
	// Defaults: 10,000 mails and 256 MiB of raw messages and their decoded bodies.
	MaxMails int
	MaxBytes int64

	// Logger gets one line per refused mail, fired fault and damaged file. Default: discards.
	Logger *slog.Logger

	// Now is the clock of quotas and of ReceivedAt. Default: time.Now.
	Now func() time.Time
}

// Quota is the sending quota of the pretended account. SES counts recipients, not mails.
type Quota struct {
	// Max24HourSend is recipients per 24 hours. Default: -1, which SES uses for "unlimited".
	Max24HourSend float64

	// MaxSendRate is recipients per second. Default: 14. At least one per minute.
	MaxSendRate float64

	// Enforce refuses what goes beyond. Default: false, the figures are only reported.
	Enforce bool
}

func (c Config) withDefaults() Config {
	if c.Quota.Max24HourSend == 0 {
		c.Quota.Max24HourSend = -1
	}
	if c.Quota.MaxSendRate == 0 {
		c.Quota.MaxSendRate = 14
	}
	if c.MaxMails == 0 {
		c.MaxMails = 10_000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 256 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// ConfigError is a field of Config that makes no sense.
type ConfigError struct {
	Field string // as in Config: "WorkflowURL", "Quota.MaxSendRate", …
	Err   error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

func (c Config) validate() error {
	if q := c.Quota.Max24HourSend; q != -1 && q <= 0 {
		return &ConfigError{"Quota.Max24HourSend", fmt.Errorf("%v recipients: give a positive number, or -1 for unlimited", q)}
	}
	if c.Quota.MaxSendRate < minRate {
		return &ConfigError{"Quota.MaxSendRate", fmt.Errorf("%v per second: give at least one a minute (%.4f)", c.Quota.MaxSendRate, minRate)}
	}
	if c.MaxMails < 0 || c.MaxBytes < 0 {
		return &ConfigError{"MaxMails", errors.New("it and MaxBytes must not be negative")}
	}
	if err := validateWorkflowURL(c.WorkflowURL); err != nil {
		return &ConfigError{"WorkflowURL", err}
	}
	return nil
}

func validateWorkflowURL(template string) error {
	if template == "" {
		return nil
	}
	if !strings.Contains(template, messageIDPlaceholder) {
		return fmt.Errorf("%q: %s is missing", template, messageIDPlaceholder)
	}
	u, err := url.Parse(expandWorkflowURL(template, "x"))
	if err != nil {
		return err // it quotes the URL
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q: give an absolute http or https URL", template)
	}
	return nil
}

func expandWorkflowURL(template, messageID string) string {
	return strings.ReplaceAll(template, messageIDPlaceholder, url.PathEscape(messageID))
}
