package doctor

import (
	"context"
	"crypto/rand"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/templates"
)

// sendTest sends one mail by the way that all mails take. It repeats no address.
func sendTest(ctx context.Context, cfg Config) []Finding {
	c := check{name: "ses.send-test", look: func(ctx context.Context) ([]Finding, error) {
		mailer, err := cfg.Mailer(ctx)
		if err != nil || mailer == nil {
			return find(Error, "set ONCEPOST_MAIL_FROM and AWS's variables", "the test mail was not sent: the settings for mails are missing or wrong")
		}
		return told(mailer.Send(ctx, activities.Mail{
			MessageID: "doctor:" + rand.Text(), EventType: "doctor",
			To: activities.Address{Email: cfg.SendTest},
			Content: templates.Content{
				Subject: "Test mail of oncepost doctor",
				Text:    "Somebody ran `oncepost doctor --send-test`. That you read this shows that mails arrive. Nothing has to be done.\n",
			},
		}), cfg)
	}}
	return c.make(ctx, cfg.Timeout)
}

// told says a send's outcome in words.
func told(a activities.Answer, cfg Config) ([]Finding, error) {
	switch {
	case cfg.Mail.DryRun && a.Verdict == activities.VerdictSent:
		return find(Note, "unset ONCEPOST_DRY_RUN to send it", "this is a dry run: the test mail did not leave")
	case a.Verdict == activities.VerdictSent:
		return find(OK, "look into the mailbox, and into its spam folder: accepted is not delivered", "SES has accepted the test mail%s, and calls it %s", redirected(cfg), a.ProviderID)
	case a.Verdict == activities.VerdictUnknown:
		return find(Warning, "look into the mailbox", "nobody knows whether the test mail was sent: %s", a.Text)
	}
	do := advice[a.Class]
	if do == "" {
		do = "docs/sending.md has what SES answers and why"
	}
	return find(Error, do, "the test mail was not sent (%s): %s", a.Class, a.Text)
}

func redirected(cfg Config) string {
	if cfg.Mail.RedirectTo == "" {
		return ""
	}
	return " to the address of ONCEPOST_MAIL_REDIRECT_TO"
}

// advice is what to do about a test mail that SES, or a setting of ours, refused.
var advice = map[string]string{ //nolint:gosec // "credentials" is a class of answers
	"sender_not_verified":      "verify the sender; and in the sandbox the recipient as well: docs/doctor.md",
	"account_paused":           "find out who has paused the account and why",
	"credentials":              "give the credentials the right ses:SendRawEmail, or put them right",
	"no_configuration_set":     "put ONCEPOST_SES_CONFIGURATION_SET right",
	activities.ClassDailyQuota: "wait until mails of yesterday are a day old, or ask AWS for a higher quota",
	"not_allowed":              "give an address that ONCEPOST_MAIL_ALLOW allows",
}
