// Package ses sends mails through AWS SES: the classic API's SendRawEmail, with the SDK's own retries off. One Send is at most
// one request, because SES has no idempotency token and a retried request can be a second mail.
package ses

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/sesraw"
	"github.com/oncepost/oncepost/internal/sestag"
)

// Config of a Mailer.
type Config struct {
	// From is the sender, with or without a display name: Example <mail@example.com>. Required.
	From string
	// ReplyTo is where answers go. Default: From.
	ReplyTo string
	// ConfigurationSet is SES's, for delivery events. Default: none.
	ConfigurationSet string
	// Timeout of one request. Default 10 s: the SDK has none for the answer.
	Timeout time.Duration
	// Endpoint is the URL of a stand-in. With it nothing of AWS's environment and profiles is read, and requests are
	// signed with credentials that are worth nothing. Default: AWS, as its own settings say.
	Endpoint string
	Safety
}

// Mailer implements activities.Mailer. It is safe for concurrent use.
type Mailer struct {
	client  *ses.Client
	cfg     Config
	from    *mail.Address
	replyTo *mail.Address
	safety  safety
}

// New reads AWS's own environment variables and profile files (AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_SES, AWS_CA_BUNDLE,
// HTTPS_PROXY and the rest mean what they always do).
func New(ctx context.Context, cfg Config) (*Mailer, error) {
	m := &Mailer{cfg: cfg}
	var err error
	if m.from, err = sesraw.Parse("sender", cfg.From); err != nil {
		return nil, err
	}
	if cfg.ReplyTo != "" {
		if m.replyTo, err = sesraw.Parse("reply-to address", cfg.ReplyTo); err != nil {
			return nil, err
		}
	}
	if m.safety, err = newSafety(cfg.Safety); err != nil {
		return nil, err
	}
	trial := activities.Mail{To: activities.Address{Email: "trial@example.com"}}
	if _, _, err := m.compose(trial); err != nil && !errors.Is(err, errNotAllowed) { // better now than with every mail
		return nil, fmt.Errorf("compose a mail: %w", err)
	}
	if cfg.DryRun {
		return m, nil // which needs nothing of AWS
	}
	if m.cfg.Timeout == 0 {
		m.cfg.Timeout = 10 * time.Second
	}
	aw, err := awsConfig(ctx, cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	m.client = ses.NewFromConfig(aw, func(o *ses.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 1
	})
	return m, nil
}

func awsConfig(ctx context.Context, endpoint string) (aws.Config, error) {
	// AWS_MAX_ATTEMPTS overrides either of the two settings alone.
	aw, err := sesraw.AWS(ctx, endpoint, config.WithRetryMaxAttempts(1),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err == nil && aw.Region == "" {
		err = sesraw.ErrNoRegion
	}
	return aw, err
}

// Send implements activities.Mailer.
func (m *Mailer) Send(ctx context.Context, mail activities.Mail) activities.Answer {
	raw, to, err := m.compose(mail)
	if errors.Is(err, errNotAllowed) {
		return never("not_allowed", err.Error())
	}
	if err != nil {
		return never("not_composed", err.Error())
	}
	if m.cfg.DryRun {
		return activities.Answer{Verdict: activities.VerdictSent, ProviderID: DryRunID}
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	in := &ses.SendRawEmailInput{
		RawMessage:   &types.RawMessage{Data: raw},
		Destinations: []string{to},
		Source:       aws.String(m.from.String()),
		Tags: []types.MessageTag{
			{Name: aws.String("message_id"), Value: aws.String(sestag.Encode(mail.MessageID))},
			{Name: aws.String("event_type"), Value: aws.String(sestag.Encode(mail.EventType))},
		},
	}
	if m.cfg.ConfigurationSet != "" {
		in.ConfigurationSetName = aws.String(m.cfg.ConfigurationSet)
	}
	ctx, span := startSpan(ctx)
	answer := m.request(ctx, in)
	endSpan(span, answer)
	return answer
}

func (m *Mailer) request(ctx context.Context, in *ses.SendRawEmailInput) activities.Answer {
	ctx, left := traced(ctx)
	out, err := m.client.SendRawEmail(ctx, in)
	if err != nil {
		return judge(err, left.Load())
	}
	if aws.ToString(out.MessageId) == "" {
		return unknown("unreadable_answer", "SES's answer names no mail; it may have been sent")
	}
	return activities.Answer{Verdict: activities.VerdictSent, ProviderID: *out.MessageId}
}

// compose writes the MIME message, and returns the recipient's bare address as well.
func (m *Mailer) compose(mail activities.Mail) (raw []byte, recipient string, err error) {
	to, err := sesraw.Address(mail.To.Name, mail.To.Email)
	if err != nil {
		return nil, "", fmt.Errorf("the recipient cannot be sent to: %w", err)
	}
	msg := m.message(mail, to)
	if err := m.safety.apply(&msg); err != nil {
		return nil, "", err
	}
	raw, err = msg.Compose()
	return raw, msg.To[0].Address, err
}

func (m *Mailer) message(in activities.Mail, to *mail.Address) sesraw.Message {
	return sesraw.Message{
		From: m.from, To: []*mail.Address{to}, ReplyTo: m.replyTo, Subject: in.Subject, Text: in.Text, HTML: in.HTML,
	}
}
