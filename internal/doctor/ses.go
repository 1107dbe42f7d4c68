package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/smithy-go"

	"github.com/oncepost/oncepost/internal/ses"
)

// account is the SES account as the checks see it.
type account struct {
	cfg    Config
	mailer *ses.Mailer
}

func checkSES(ctx context.Context, cfg Config) []Finding {
	a := &account{cfg: cfg}
	opened := run(ctx, cfg.Timeout, []check{{name: "ses.configured", look: a.configured}})
	if a.mailer == nil || a.mailer.API() == nil {
		return opened
	}
	return append(opened, run(ctx, cfg.Timeout, []check{
		{name: "ses.quota", look: a.quota},
		{name: "ses.sending-enabled", look: a.enabled},
		{name: "ses.sender", look: a.sender},
		{name: "ses.configuration-set", look: a.configurationSet},
	})...)
}

func (a *account) configured(ctx context.Context) (_ []Finding, err error) {
	switch a.mailer, err = a.cfg.Mailer(ctx); {
	case err != nil:
		return find(Error, "put the ONCEPOST_MAIL_ and AWS variables right", "no worker will start with these settings: %s", reason(err, a.cfg.Timeout))
	case a.mailer == nil:
		return find(Note, "where this machine is to run a worker, set it", "ONCEPOST_MAIL_FROM is not set: SES is not looked at")
	case a.mailer.API() == nil:
		return find(Note, "unset ONCEPOST_DRY_RUN to look at it", "in a dry run SES is not looked at")
	}
	return ok("mails leave by SES in %s", a.mailer.Region())
}

// The quota of an account in the sandbox, by SES's developer guide; and the share of any quota that is worth a word.
const (
	sandboxQuota = 200
	nearlyUsed   = 0.9
)

func (a *account) quota(ctx context.Context) ([]Finding, error) {
	q, err := a.mailer.Quota(ctx)
	if err != nil {
		return refused("GetSendQuota", err), nil
	}
	if q.PerDay < 0 {
		return ok("SES sets no limit of the day")
	}
	found := []Finding{{Text: fmt.Sprintf("%.0f of the %.0f mails that SES allows in 24 hours are sent; %g a second are allowed", q.SentLastDay, q.PerDay, q.PerSecond)}}
	if q.PerDay <= sandboxQuota {
		found = append(found, Finding{
			Severity: Warning, Text: fmt.Sprintf("SES allows %.0f mails in 24 hours, as in its sandbox, where it also refuses every recipient that is not verified", q.PerDay),
			Do: "ask AWS for production access in this region: docs/doctor.md",
		})
	}
	if q.SentLastDay >= nearlyUsed*q.PerDay {
		found = append(found, Finding{
			Severity: Warning, Text: fmt.Sprintf("%.0f of the %.0f mails that SES allows in 24 hours are used up; when they are, sending stops until some are a day old", q.SentLastDay, q.PerDay),
			Do: "ask AWS for a higher quota, in the console under Service Quotas",
		})
	}
	return found, nil
}

func (a *account) enabled(ctx context.Context) ([]Finding, error) {
	out, err := a.mailer.API().GetAccountSendingEnabled(ctx, &api.GetAccountSendingEnabledInput{})
	if err != nil {
		return refused("GetAccountSendingEnabled", err), nil
	}
	if !out.Enabled {
		return find(Error, "find out who has paused it and why (AWS writes to the account's address), then run aws ses update-account-sending-enabled --enabled",
			"sending is paused for the account in this region: SES refuses every mail")
	}
	return ok("the account may send")
}

// sender looks for the address itself, its domain, and the domains above that, which cover their subdomains.
func (a *account) sender(ctx context.Context) ([]Finding, error) {
	address := a.mailer.Sender()
	domain := strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
	identities := []string{address}
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		identities = append(identities, d)
	}
	out, err := a.mailer.API().GetIdentityVerificationAttributes(ctx, &api.GetIdentityVerificationAttributesInput{Identities: identities})
	if err != nil {
		return refused("GetIdentityVerificationAttributes", err), nil
	}
	status := "it knows neither"
	for _, identity := range identities {
		switch got := out.VerificationAttributes[identity].VerificationStatus; {
		case got == types.VerificationStatusSuccess:
			return ok("SES has verified the sender")
		case got != "":
			status = "its word for that is " + string(got)
		}
	}
	return find(Error, "verify the domain (DNS records) or the address (a link in a mail) in the SES console of this region: docs/doctor.md",
		"SES has verified neither the sender's address nor the domain %s (%s), and refuses every mail", domain, status)
}

func (a *account) configurationSet(ctx context.Context) ([]Finding, error) {
	name := a.cfg.Mail.ConfigurationSet
	if name == "" {
		return ok("no configuration set is used")
	}
	_, err := a.mailer.API().DescribeConfigurationSet(ctx, &api.DescribeConfigurationSetInput{ConfigurationSetName: aws.String(name)})
	if code(err) == "ConfigurationSetDoesNotExist" {
		return find(Error, "create it in this region, or put ONCEPOST_SES_CONFIGURATION_SET right", "SES knows no configuration set %s here, and refuses every mail", name)
	}
	if err != nil {
		return refused("DescribeConfigurationSet", err), nil
	}
	return ok("the configuration set %s is there", name)
}

// code is SES's error code, without the ending that the API's names for one thing vary in; "" where SES has not answered.
func code(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return strings.TrimSuffix(answer.ErrorCode(), "Exception")
}

// refused says what an error of a call that only asks means. Of SES's own text nothing is repeated: it names accounts.
func refused(call string, err error) []Finding {
	f := Finding{Severity: Error, Do: "see to it that this machine reaches AWS, and has credentials and a region (AWS_REGION, AWS_PROFILE, a role)"}
	switch c := code(err); {
	case strings.HasPrefix(c, "AccessDenied") || c == "NotAuthorized" || c == "UnauthorizedOperation":
		f = Finding{Severity: Note, Text: fmt.Sprintf("the credentials may not call %s, so that this could not be checked", call), Do: "allow ses:" + call + ", or look in the SES console"}
	case strings.HasPrefix(c, "Throttling") || c == "TooManyRequests":
		f = Finding{Severity: Note, Text: fmt.Sprintf("SES was asked too often just now, so that this could not be checked (%s)", call), Do: "run oncepost doctor again"}
	case c != "":
		f.Text = fmt.Sprintf("SES refuses %s with %s; it will most likely refuse mails, too", call, c)
	case errors.Is(err, context.DeadlineExceeded):
		f.Text = fmt.Sprintf("SES did not answer %s in time", call)
	default:
		f.Text = fmt.Sprintf("SES cannot be asked (%s): %s", call, err)
	}
	return []Finding{f}
}
