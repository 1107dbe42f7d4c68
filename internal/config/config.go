// Package config is where flags and the environment are read: groups of options that the commands embed, each with the
// means to open what it describes. Every flag has an environment variable; Temporal's and AWS's own variables and profile
// files are read by their own libraries.
package config

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/monitor"
	"github.com/oncepost/oncepost/templates"
)

// Log says how to log. Logs go to standard error.
type Log struct {
	Level  slog.Level `name:"log-level" env:"ONCEPOST_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	Format string     `name:"log-format" env:"ONCEPOST_LOG_FORMAT" default:"text" enum:"text,json" help:"text or json."`
}

// New returns the logger.
func (l Log) New(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// MySQL says where oncepost's tables are.
type MySQL struct {
	DSN   string `name:"mysql-dsn" env:"ONCEPOST_MYSQL_DSN" placeholder:"DSN" help:"The database with oncepost's tables: user:password@tcp(host:3306)/database. Keep it in the environment: others on the machine can see a flag."`
	TLSCA string `name:"mysql-tls-ca" env:"ONCEPOST_MYSQL_TLS_CA" placeholder:"FILE" help:"Certificate authorities (PEM) to trust; turns TLS on. Default: what the DSN's tls parameter says."`
}

// Open returns the pool, without looking at the tables.
func (m MySQL) Open(logger *slog.Logger) (*sql.DB, error) {
	db, err := mysqldb.Open(mysqldb.Config{DSN: m.DSN, TLSCA: m.TLSCA, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("ONCEPOST_MYSQL_DSN: %w", err)
	}
	return db, nil
}

// Bounds of AwaitMigrated.
const (
	checkTimeout = 10 * time.Second
	firstPause   = 500 * time.Millisecond
	maxPause     = 15 * time.Second
)

// AwaitMigrated returns the pool, once it is sure that the tables are there. It waits for a server that is away, until ctx
// ends; what waiting cannot cure is an error at once: a bad DSN, an account or a database that the server refuses, tables
// that are not migrated. People hear of a wait by tell, which may be nil, after so long, and that it is over: nobody else may live
// to tell them.
func (m MySQL) AwaitMigrated(ctx context.Context, logger *slog.Logger, after time.Duration, tell Tell) (*sql.DB, error) {
	db, err := m.Open(logger)
	if err != nil {
		return nil, err
	}
	wait := waiting{began: time.Now(), after: after, tell: tell, logger: logger}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := check(ctx, db)
		if err == nil {
			wait.over(ctx)
			logger.Info("database ready; these settings hold whatever the DSN says", "forced", mysqldb.Forced)
			return db, nil
		}
		var version *migrate.VersionError
		if ctx.Err() != nil || errors.As(err, &version) || mysqldb.Refused(err) {
			return nil, errors.Join(err, db.Close())
		}
		logger.Warn("MySQL is not ready, will try again", "error", err, "after", pause)
		wait.goesOn(ctx, err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Tell is monitor.Config's.
type Tell = func(ctx context.Context, n monitor.Notice) error

// waiting tells people of the wait for the database.
type waiting struct {
	began  time.Time
	after  time.Duration
	tell   Tell
	logger *slog.Logger
	told   bool
}

func (w *waiting) goesOn(ctx context.Context, why error) {
	if w.tell != nil && !w.told && time.Since(w.began) >= w.after {
		w.told = w.say(ctx, monitor.DatabaseAway("a process that starts waits for it: "+why.Error(), time.Since(w.began), false))
	}
}

func (w *waiting) over(ctx context.Context) {
	if w.told {
		w.say(ctx, monitor.DatabaseAway("", time.Since(w.began), true))
	}
}

func (w *waiting) say(ctx context.Context, n monitor.Notice) (reached bool) {
	err := w.tell(ctx, n)
	if err != nil {
		w.logger.Error("people could not be told that the database is away", "over", n.Over, "error", err)
	}
	return err == nil
}

func check(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return migrate.Check(ctx, db)
}

// Temporal reaches the namespace. It has no flags of its own: Temporal's variables (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
// TEMPORAL_API_KEY, TEMPORAL_TLS_…) and its profile file (TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE) are read.
type Temporal struct{}

// Dial returns a client and the name of its namespace. It does not connect yet, so that Temporal may be away at the start. adjust
// changes the options before.
func (Temporal) Dial(logger *slog.Logger, adjust ...func(*client.Options)) (client.Client, string, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, "", fmt.Errorf("Temporal configuration: %w", err)
	}
	options.Logger = log.NewStructuredLogger(logger)
	for _, f := range adjust {
		f(&options)
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, "", fmt.Errorf("Temporal configuration: %w", err)
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	return c, options.Namespace, nil
}

// Mail says how mails are sent. AWS's variables and profile files are read beside it.
type Mail struct {
	From             string `name:"mail-from" env:"ONCEPOST_MAIL_FROM" placeholder:"ADDRESS" help:"The sender: mail@example.com or 'Example <mail@example.com>'. A worker needs it."`
	ReplyTo          string `name:"mail-reply-to" env:"ONCEPOST_MAIL_REPLY_TO" placeholder:"ADDRESS" help:"Where answers go. Default: the sender."`
	ConfigurationSet string `name:"ses-configuration-set" env:"ONCEPOST_SES_CONFIGURATION_SET" placeholder:"NAME" help:"SES configuration set, for delivery events."`
	Templates        string `name:"templates" env:"ONCEPOST_TEMPLATES" type:"existingdir" placeholder:"DIR" help:"Templates beside the built-in ones: DIR/<event type>/<locale>/{subject.txt,body.txt,body.html}."`

	Allow      []string `name:"mail-allow" env:"ONCEPOST_MAIL_ALLOW" placeholder:"RECIPIENT" help:"Outside production: the only addresses, and domains, that mails may go to, with commas between. A mail to anybody else fails for good. Default: all."`
	RedirectTo string   `name:"mail-redirect-to" env:"ONCEPOST_MAIL_REDIRECT_TO" placeholder:"ADDRESS" help:"Outside production: every mail goes to this address; its subject and the header X-Oncepost-Intended-For name who was meant."`
	DryRun     bool     `name:"dry-run" env:"ONCEPOST_DRY_RUN" help:"Do everything but the request to SES. Mails then count as sent, for good: not with a database of production."`
}

// Alerts says where alerts to people go. Package alerts reads the same variables where a program calls its Send.
type Alerts struct {
	AlertFrom     string `name:"alert-from" env:"ONCEPOST_ALERT_FROM" placeholder:"ADDRESS" help:"The sender of alerts: alerts@example.com or 'Example <alerts@example.com>'."`
	AlertTo       string `name:"alert-to" env:"ONCEPOST_ALERT_TO" placeholder:"ADDRESSES" help:"Who gets alerts by mail, with commas between."`
	AlertProfile  string `name:"alert-aws-profile" env:"ONCEPOST_ALERT_AWS_PROFILE" placeholder:"NAME" help:"AWS profile for alerts, best of another account than the mails'. Default: as AWS's own variables say."`
	AlertRegion   string `name:"alert-aws-region" env:"ONCEPOST_ALERT_AWS_REGION" placeholder:"REGION" help:"AWS region for alerts. Default: the profile's, or as AWS's own variables say."`
	AlertWebhook  string `name:"alert-webhook" env:"ONCEPOST_ALERT_WEBHOOK" placeholder:"URL" help:"Gets an alert as JSON where no mail could be sent. Keep it in the environment: others on the machine can see a flag."`
	AlertEndpoint string `name:"alert-endpoint" env:"ONCEPOST_ALERT_ENDPOINT" placeholder:"URL" help:"An SES stand-in for alerts. Default: AWS."`
}

// Config is package alerts' own.
func (a Alerts) Config(logger *slog.Logger) alerts.Config {
	return alerts.Config{
		From: a.AlertFrom, To: alerts.SplitAddresses(a.AlertTo), AWSProfile: a.AlertProfile, AWSRegion: a.AlertRegion,
		Webhook: a.AlertWebhook, Endpoint: a.AlertEndpoint, Logger: logger,
	}
}

// Alerter is nil where nothing says where alerts go.
func (a Alerts) Alerter(logger *slog.Logger) (*alerts.Alerter, error) {
	cfg := a.Config(logger)
	if !cfg.Set() {
		return nil, nil //nolint:nilnil // as documented
	}
	return alerts.New(cfg)
}

// Sends says how many mails are sent at once, and how many a second.
type Sends struct {
	MaxSends int      `name:"max-sends" env:"ONCEPOST_WORKER_MAX_SENDS" default:"100" help:"Bound on sends in flight in this process's worker."`
	Rate     *float64 `name:"send-rate" env:"ONCEPOST_SEND_RATE" placeholder:"N" help:"Mails a second, of all workers together: the limit of the task queue oncepost-send, so give all the same. 0: no limit. Default: what SES's GetSendQuota says, live, times --send-rate-share."`
	Share    float64  `name:"send-rate-share" env:"ONCEPOST_SEND_RATE_SHARE" default:"0.9" help:"Share of the account's sending rate that oncepost takes, up to 1."`
}

// CheckSends refuses numbers that make no sense.
func (s Sends) CheckSends() error {
	switch {
	case s.MaxSends <= 0:
		return UsageError{errors.New("--max-sends must be positive")}
	case s.Rate != nil && !(*s.Rate >= 0 && *s.Rate <= maxRate):
		return UsageError{fmt.Errorf("--send-rate must be from 0 (no limit) to %d", maxRate)}
	case !(s.Share > 0 && s.Share <= 1):
		return UsageError{errors.New("--send-rate-share must be more than 0, and 1 at most")}
	}
	return nil
}

// maxRate is more than any account has.
const maxRate = 1_000_000

// Activities returns the activities with SES behind them. The ledger is the caller's to set.
func (m Mail) Activities(ctx context.Context, logger *slog.Logger) (*activities.Activities, error) {
	if m.From == "" {
		return nil, errors.New("ONCEPOST_MAIL_FROM is not set: give the address that mails come from")
	}
	mailer, err := ses.New(ctx, m.Config())
	if err != nil {
		return nil, err
	}
	m.warn(logger)
	return NewActivities(mailer, m.Templates)
}

// Config is the mailer's.
func (m Mail) Config() ses.Config {
	return ses.Config{
		From: m.From, ReplyTo: m.ReplyTo, ConfigurationSet: m.ConfigurationSet,
		Safety: ses.Safety{Allow: m.Allow, RedirectTo: m.RedirectTo, DryRun: m.DryRun},
	}
}

// warn says at the start what must never hold in production by mistake. It repeats no address.
func (m Mail) warn(logger *slog.Logger) {
	if m.DryRun {
		logger.Warn("DRY RUN: no mail leaves, and each counts as sent for good (ONCEPOST_DRY_RUN)")
	}
	if m.RedirectTo != "" {
		logger.Warn("REDIRECTED: every mail goes to one address, and none to its recipient (ONCEPOST_MAIL_REDIRECT_TO)")
	}
	if len(m.Allow) > 0 {
		logger.Warn("RESTRICTED: mails to anybody but the allowed recipients fail for good (ONCEPOST_MAIL_ALLOW)", "entries", len(m.Allow))
	}
}

// NewActivities returns the activities with the built-in schemas and templates, and the templates of a folder where
// one is given. The ledger is the caller's to set.
func NewActivities(mailer activities.Mailer, folder string) (*activities.Activities, error) {
	payloads, err := activities.BuiltinPayloads()
	if err != nil {
		return nil, err
	}
	set, err := templates.Builtin()
	if folder != "" {
		set, err = templates.Builtin(os.DirFS(folder))
	}
	if err != nil {
		return nil, err
	}
	return &activities.Activities{Mailer: mailer, Templates: set, Payloads: payloads}, nil
}
