package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/sesraw"
	"github.com/oncepost/oncepost/templates"
)

// local is this machine's own settings.
type local struct{ cfg Config }

func checkLocal(ctx context.Context, cfg Config) []Finding {
	l := local{cfg}
	return run(ctx, cfg.Timeout, []check{
		{name: "local.event-types", look: l.eventTypes},
		{name: "local.alerts", look: l.alerts},
		{name: "local.alerts-account", look: l.account},
		{name: "local.recipients", look: l.recipients},
	})
}

// eventTypes: a worker finds out what is missing only with the first message of the type.
func (l local) eventTypes(context.Context) ([]Finding, error) {
	acts, err := l.cfg.Activities()
	if err != nil {
		return find(Error, "put the file right: docs/sending.md", "a schema or a template cannot be used, and no worker will start: %s", err)
	}
	if missing := l.missing(acts); len(missing) > 0 {
		return find(Error, "add them in schemas/events, in templates, or in the folder of ONCEPOST_TEMPLATES",
			"messages of these event types would fail: %s", strings.Join(missing, "; "))
	}
	if stray := l.stray(acts); len(stray) > 0 {
		return find(Note, "see whether the folder's name is spelt as the event type", "no workflow here uses the templates of: %s", strings.Join(stray, ", "))
	}
	return ok("each event type has its schema, and its templates where it sends mails")
}

func (l local) missing(acts *activities.Activities) (missing []string) {
	schemas := acts.Payloads.Types()
	for _, typ := range l.cfg.Registry.Types() {
		if !slices.Contains(schemas, typ.Name) {
			missing = append(missing, typ.Name+" has no schema")
		}
		if !typ.NoMail && !acts.Templates.Has(typ.Name, templates.DefaultLocale) {
			missing = append(missing, typ.Name+" has no templates")
		}
	}
	return missing
}

// stray are templates that belong to no event type.
func (l local) stray(acts *activities.Activities) (stray []string) {
	for _, name := range acts.Templates.Types() {
		used := false
		for _, typ := range l.cfg.Registry.Types() {
			used = used || typ.Name == name
		}
		if !used {
			stray = append(stray, name)
		}
	}
	slices.Sort(stray)
	return stray
}

func (l local) alerts(context.Context) ([]Finding, error) {
	if !l.cfg.Alerts.Set() {
		return find(Warning, "set ONCEPOST_ALERT_FROM and ONCEPOST_ALERT_TO, or ONCEPOST_ALERT_WEBHOOK: docs/alerts.md",
			"nobody is told of anything: no way to send alerts is set")
	}
	if _, err := alerts.New(l.cfg.Alerts); err != nil {
		return find(Error, "put the ONCEPOST_ALERT_ variables right: docs/alerts.md", "alerts will not leave as they should, and no worker will start: %s", err)
	}
	return ok("alerts are set up")
}

// account: what stops the mails of an account stops its alerts as well.
func (l local) account(ctx context.Context) ([]Finding, error) {
	c := l.cfg.Alerts
	mailer, err := l.cfg.Mailer(ctx)
	switch {
	case c.Webhook != "":
		return ok("alerts have a webhook, which needs no SES")
	case c.From == "" || len(c.To) == 0 || err != nil || mailer == nil || mailer.API() == nil:
		return ok("there is no account that mails and alerts could share")
	}
	own, err := sesraw.Profile(ctx, c.Endpoint, c.AWSProfile, c.AWSRegion)
	if err != nil {
		return nil, err
	}
	shared, err := sharesAccount(ctx, mailer, own, c)
	if err != nil {
		return nil, err
	}
	if shared {
		return find(Warning, "set ONCEPOST_ALERT_WEBHOOK, or ONCEPOST_ALERT_AWS_PROFILE to another account: docs/alerts.md",
			"alerts leave by the account and region of the mails, and there is no webhook: when SES pauses it, nobody is told")
	}
	return ok("alerts leave by other credentials, or another region, than mails")
}

// sharesAccount goes by the credentials, since SES tells no account's name: two keys of one account look like two accounts.
func sharesAccount(ctx context.Context, mailer *ses.Mailer, own aws.Config, c alerts.Config) (bool, error) {
	if c.Endpoint != "" || own.Region != mailer.Region() {
		return false, nil
	}
	if c.AWSProfile == "" || c.AWSProfile == os.Getenv("AWS_PROFILE") {
		return true, nil
	}
	mails, err := mailer.API().Options().Credentials.Retrieve(ctx)
	if err != nil {
		return false, fmt.Errorf("the credentials of mails: %w", err)
	}
	others, err := own.Credentials.Retrieve(ctx)
	if err != nil {
		return false, fmt.Errorf("the credentials of alerts: %w", err)
	}
	return mails.AccessKeyID == others.AccessKeyID || mails.AccountID != "" && mails.AccountID == others.AccountID, nil
}

// recipients says what must not be forgotten on the way to production. It repeats no address.
func (l local) recipients(context.Context) (found []Finding, err error) {
	note := func(text string) {
		found = append(found, Finding{Severity: Note, Text: text, Do: "leave it so outside production only: docs/staging.md"})
	}
	if l.cfg.Mail.DryRun {
		note("ONCEPOST_DRY_RUN is set: no mail leaves, and each counts as sent for good")
	}
	if l.cfg.Mail.RedirectTo != "" {
		note("ONCEPOST_MAIL_REDIRECT_TO is set: every mail goes to one address, and none to its recipient")
	}
	if n := len(l.cfg.Mail.Allow); n > 0 {
		note(fmt.Sprintf("ONCEPOST_MAIL_ALLOW is set, with %d entries: mails to anybody else fail for good", n))
	}
	if len(found) > 0 {
		return found, nil
	}
	return ok("mails go to their recipients")
}
