// Package alerts tells people of what a program cannot put right by itself: straight through AWS SES, with neither a database
// nor Temporal in between, because what broke may be one of them.
//
//	err := alerts.Send(ctx, alerts.Alert{Title: "payment taken but the database update failed", Detail: err.Error()})
//
// An alert goes to the error log first, then out as a mail. Where SES refuses it or is away, a webhook carries it. It may
// arrive twice; it is not lost while any of the ways is open. What it is not: a queue (nothing is kept over the end of the
// process), and no way for mails to customers.
package alerts

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// Alert is one thing to tell.
type Alert struct {
	// Title says it in a line: the subject of the mail. Control characters become spaces; what is beyond 200 characters is cut.
	Title string
	// Detail is the rest, of any length up to 64 KiB; more is cut.
	Detail string
	// Fields are names and values to list below Detail: an order number, a host. The first 50 by name, 4 KiB each.
	Fields map[string]string
	// Key is what makes two alerts the same. Default: Title. Give one where the title holds a number that varies.
	Key string
}

// Config of an Alerter. To or Webhook is required.
type Config struct {
	// From is the sender, with or without a display name: Example <alerts@example.com>.
	From string
	// To are the recipients, up to 50, with or without display names. One mail goes to all.
	To []string
	// AWSProfile is a profile in AWS's files, whose region and credentials then count more than AWS's own variables.
	// Default: as AWS's variables and files say. Give one of another account than the mails', where there is one.
	AWSProfile string
	// AWSRegion counts more than any other. Default: the profile's, or as AWS's variables and files say.
	AWSRegion string
	// Webhook is a URL that gets the alert as JSON where no mail could be sent. Its member text is one that Slack and others
	// show. Default: none.
	Webhook string
	// Endpoint is the URL of an SES stand-in. With it nothing of AWS's environment and profiles is read. Default: AWS.
	Endpoint string
	// Window is for how long the same alert is counted and not repeated. Default 10 min.
	Window time.Duration
	// Timeout bounds a Send, whatever SES and the webhook do. Default 15 s.
	Timeout time.Duration
	// Logger gets every alert that is not merely counted. Default: slog.Default(), as it is at that time.
	Logger *slog.Logger
}

// Bounds of what is kept and of time.
const (
	window  = 10 * time.Minute
	timeout = 15 * time.Second
	// pause is for how long an alert that has reached nobody is not tried again: a program in a loop must not spend its time
	// on a provider that refuses.
	pause = 30 * time.Second
	// maxKeys bounds the alerts that are remembered. Beyond it the oldest is forgotten, with its count.
	maxKeys = 1000
)

// Alerter sends alerts. It is safe for concurrent use, needs no closing and holds nothing open between alerts.
type Alerter struct {
	cfg     Config
	mail    *mailer  // nil: none
	hook    *webhook // nil: none
	wrong   error    // what New has found
	repeats *repeats
	now     func() time.Time
}

// New returns an Alerter always: with settings that are wrong it still writes the log, and uses what is right of them. The
// error says what is wrong, for a program that would rather not start than alert half. No address is in it.
func New(cfg Config) (*Alerter, error) {
	a := build(cfg)
	if a.wrong != nil || a.mail == nil {
		return a, a.wrong
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.Timeout)
	defer cancel()
	_, err := a.mail.open(ctx) // tried again with each mail
	return a, err
}

// build does what needs no file and no network.
func build(cfg Config) *Alerter {
	if cfg.Window == 0 {
		cfg.Window = window
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = timeout
	}
	a := &Alerter{cfg: cfg, repeats: newRepeats(maxKeys), now: time.Now}
	var mailErr, hookErr error
	if len(cfg.To) > 0 || cfg.From != "" {
		a.mail, mailErr = newMailer(cfg)
	}
	if cfg.Webhook != "" {
		a.hook, hookErr = newWebhook(cfg.Webhook)
	}
	if !cfg.Set() {
		hookErr = errNoWay
	}
	a.wrong = errors.Join(mailErr, hookErr)
	return a
}

var errNoWay = errors.New("no way to send alerts is set: ONCEPOST_ALERT_FROM and ONCEPOST_ALERT_TO for mails, or ONCEPOST_ALERT_WEBHOOK")

// Set reports whether anything says where alerts go.
func (c Config) Set() bool { return c.From != "" || len(c.To) > 0 || c.Webhook != "" }

// Send sends an alert, and returns within Config.Timeout. It heeds neither the cancellation nor the deadline of ctx: an alert
// about a request that was given up must leave too.
//
// Nil means that SES has accepted the mail (without From and To: that the webhook has the alert). An *Error says what failed, and whether the alert has reached somebody all the same.
// The same alert within Config.Window, or while the first is being sent, is counted and not sent: Send then returns what the
// first one's did. The next one that leaves says how many were counted.
func (a *Alerter) Send(ctx context.Context, alert Alert) error {
	if alert.Key == "" {
		alert.Key = alert.Title
	}
	first, e := a.repeats.begin(alert.Key, a.now())
	if !first {
		<-e.done // soon: who sends is bounded
		return e.err
	}
	err := &Error{Webhook: errors.New("it broke off")} // a panic's
	defer func() {
		hold := a.cfg.Window
		if !err.Reached() {
			hold = min(hold, pause)
		}
		a.repeats.end(e, a.now().Add(hold), err.orNil(), err.Reached())
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Timeout)
	defer cancel()
	err = a.send(ctx, newNotice(alert, e.before, a.now()))
	return err.orNil()
}

// send writes the log before anything else: that needs nobody.
func (a *Alerter) send(ctx context.Context, n notice) *Error {
	log := a.cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	log.LogAttrs(ctx, slog.LevelError, "alert", n.attrs()...)
	err := a.deliver(ctx, n)
	if text := err.orNil(); text != nil {
		log.LogAttrs(ctx, slog.LevelError, "alert not sent as it should be", slog.String("title", mask(n.Title)), slog.Any("error", text))
	}
	return err
}

func (a *Alerter) deliver(ctx context.Context, n notice) *Error {
	err := &Error{Settings: a.wrong}
	if a.mail != nil {
		limit := a.cfg.Timeout
		if a.hook != nil {
			limit = limit * 2 / 3 // the rest is the webhook's
		}
		if err.Mail = a.mail.send(ctx, limit, n); err.Mail == nil {
			err.By = "mail"
			return err
		}
	}
	if a.hook != nil {
		if err.Webhook = a.hook.send(ctx, n); err.Webhook == nil {
			err.By = "webhook"
		}
	}
	return err
}

// host is told with an alert.
func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return name
}
