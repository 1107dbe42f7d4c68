package ses

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/ses"

	"github.com/oncepost/oncepost/activities"
)

// Quota asks SES for the account's quota. SES's own -1 means no limit; a dry run has none.
func (m *Mailer) Quota(ctx context.Context) (activities.Quota, error) {
	if m.cfg.DryRun {
		return activities.Quota{PerSecond: -1, PerDay: -1}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	out, err := m.client.GetSendQuota(ctx, &ses.GetSendQuotaInput{})
	if err != nil {
		return activities.Quota{}, fmt.Errorf("GetSendQuota: %w", err)
	}
	return activities.Quota{PerSecond: out.MaxSendRate, PerDay: out.Max24HourSend, SentLastDay: out.SentLast24Hours}, nil
}

// Credentials tells the mailer's credentials from others: by the access key where it lasts, else by the host and the profile,
// for a role's keys change by the hour. Nothing can be read from it.
func (m *Mailer) Credentials(ctx context.Context) string {
	if m.cfg.DryRun {
		return fingerprint("dry run")
	}
	if provider := m.client.Options().Credentials; provider != nil {
		if c, err := provider.Retrieve(ctx); err == nil && !c.CanExpire && c.SessionToken == "" {
			return fingerprint("key", c.AccessKeyID)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // all such hosts with this profile stop together
	}
	return fingerprint("host", host, os.Getenv("AWS_PROFILE"))
}

func fingerprint(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:8])
}

// API is SES as this mailer reaches it, for whoever looks at the account; nil in a dry run.
func (m *Mailer) API() *ses.Client { return m.client }

// Region is the AWS region that mails leave by; "" in a dry run.
func (m *Mailer) Region() string {
	if m.client == nil {
		return ""
	}
	return m.client.Options().Region
}

// Sender is the bare address that mails come from.
func (m *Mailer) Sender() string { return m.from.Address }
