// Package ses sends mails through AWS SES: the classic API's SendRawEmail, with the SDK's own retries off. One Send is at most
// one request, because SES has no idempotency token and a retried request can be a second mail.
package ses

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/mail"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"
	gomail "github.com/wneessen/go-mail"

	"github.com/oncepost/oncepost/activities"
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
}

// Mailer implements activities.Mailer. It is safe for concurrent use.
type Mailer struct {
	client  *ses.Client
	cfg     Config
	from    *mail.Address
	replyTo *mail.Address
}

// New reads AWS's own environment variables and profile files (AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_SES, AWS_CA_BUNDLE,
// HTTPS_PROXY and the rest mean what they always do).
func New(ctx context.Context, cfg Config) (*Mailer, error) {
	m := &Mailer{cfg: cfg}
	var err error
	if m.from, err = parse("sender", cfg.From); err != nil {
		return nil, err
	}
	if cfg.ReplyTo != "" {
		if m.replyTo, err = parse("reply-to address", cfg.ReplyTo); err != nil {
			return nil, err
		}
	}
	trial := activities.Mail{To: activities.Address{Email: "trial@example.com"}}
	if _, _, err := m.compose(trial); err != nil { // better now than with every mail
		return nil, fmt.Errorf("compose a mail: %w", err)
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

// parse reads an address of the configuration; what says whose it is.
func parse(what, s string) (*mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil {
		return nil, fmt.Errorf("the %s is not an address like mail@example.com or Example <mail@example.com>", what)
	}
	if a, err = address(a.Name, a.Address); err != nil {
		return nil, fmt.Errorf("the %s is not one that SES takes: %w", what, err)
	}
	return a, nil
}

func awsConfig(ctx context.Context, endpoint string) (aws.Config, error) {
	if endpoint != "" {
		return aws.Config{
			Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "standin", SecretAccessKey: "standin"}, nil
			}),
		}, nil
	}
	// AWS_MAX_ATTEMPTS overrides either of the two settings alone.
	aw, err := config.LoadDefaultConfig(ctx, config.WithRetryMaxAttempts(1),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	if aw.Region == "" {
		return aws.Config{}, errors.New("no AWS region: set AWS_REGION, or a profile with one")
	}
	return aw, nil
}

// Send implements activities.Mailer.
func (m *Mailer) Send(ctx context.Context, mail activities.Mail) activities.Answer {
	raw, to, err := m.compose(mail)
	if err != nil {
		return never("not_composed", err.Error())
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

// compose writes the MIME message, with text and HTML as alternatives, and returns the recipient's bare address as well.
func (m *Mailer) compose(mail activities.Mail) (raw []byte, recipient string, err error) {
	to, err := address(mail.To.Name, mail.To.Email)
	if err != nil {
		return nil, "", fmt.Errorf("the recipient cannot be sent to: %w", err)
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	// The library's own setters fold at any space, and so change a name or a subject with two in a row.
	set := func(header gomail.Header, value string) {
		msg.SetGenHeaderPreformatted(header, fold(string(header), value))
	}
	set("From", m.from.String())
	set("To", to.String())
	if m.replyTo != nil {
		set("Reply-To", m.replyTo.String())
	}
	set(gomail.HeaderSubject, mime.QEncoding.Encode("utf-8", mail.Subject))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	msg.SetBodyString(gomail.TypeTextPlain, mail.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, mail.HTML)
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, "", errors.New("the mail cannot be written as MIME")
	}
	if b.Len() > maxMail {
		return nil, "", fmt.Errorf("the mail has %d bytes as MIME, and SES takes %d", b.Len(), maxMail)
	}
	return b.Bytes(), to.Address, nil
}

// maxMail is the largest mail that classic SES takes, encoded (its developer guide's page on quotas: 10 MB).
const maxMail = 10 << 20
