package alerts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/smithy-go"

	"github.com/oncepost/oncepost/internal/sesraw"
)

// mailer sends alerts through SES.
type mailer struct {
	cfg  Config
	from *mail.Address
	to   []*mail.Address

	turn   chan struct{} // held by who uses client; not a mutex, because nobody may wait beyond its time
	client *ses.Client   // nil until AWS's configuration could be read
}

// maxTo is how many recipients SES takes for one mail.
const maxTo = 50

// newMailer returns nil where no mail can be sent; with an error and a mailer some of the recipients are wrong.
func newMailer(cfg Config) (*mailer, error) {
	if cfg.From == "" || len(cfg.To) == 0 {
		return nil, errors.New("alerts by mail need both ONCEPOST_ALERT_FROM and ONCEPOST_ALERT_TO")
	}
	m := &mailer{cfg: cfg, turn: make(chan struct{}, 1)}
	var err error
	if m.from, err = sesraw.Parse("alerts' sender (ONCEPOST_ALERT_FROM)", cfg.From); err != nil {
		return nil, err
	}
	var wrong []error
	for i, s := range cfg.To {
		to, err := sesraw.Parse(fmt.Sprintf("alerts' recipient %d of %d (ONCEPOST_ALERT_TO)", i+1, len(cfg.To)), s)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		m.to = append(m.to, to)
	}
	if len(m.to) > maxTo {
		m.to = m.to[:maxTo]
		wrong = append(wrong, fmt.Errorf("alerts have %d recipients, of which SES takes %d", len(cfg.To), maxTo))
	}
	if len(m.to) == 0 {
		return nil, errors.Join(wrong...)
	}
	return m, errors.Join(wrong...)
}

// open reads AWS's configuration, until that has succeeded once.
func (m *mailer) open(ctx context.Context) (*ses.Client, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, errors.New("AWS's configuration could not be read in time")
	}
	if m.client != nil {
		return m.client, nil
	}
	aw, err := m.aws(ctx)
	if err != nil {
		return nil, err
	}
	// An alert may be doubled and must not be lost: here, unlike with the mails, retries are right.
	m.client = ses.NewFromConfig(aw, func(o *ses.Options) {
		o.RetryMaxAttempts = attempts // also over AWS_MAX_ATTEMPTS
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff, o.RateLimiter = attempts, maxBackoff, ratelimit.None
		})
		o.HTTPClient = m.http(o.HTTPClient)
	})
	return m.client, nil
}

const (
	attempts   = 3
	maxBackoff = 300 * time.Millisecond
)

// http gives each attempt a part of the time: one that hangs must not be the only one.
func (m *mailer) http(configured aws.HTTPClient) aws.HTTPClient {
	client, ok := configured.(*awshttp.BuildableClient) // with the certificates of AWS_CA_BUNDLE
	if !ok {
		client = awshttp.NewBuildableClient()
	}
	return client.WithTimeout(m.cfg.Timeout / 5).WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
}

func (m *mailer) aws(ctx context.Context) (aws.Config, error) {
	aw, err := sesraw.Profile(ctx, m.cfg.Endpoint, m.cfg.AWSProfile, m.cfg.AWSRegion)
	if err != nil {
		return aws.Config{}, errors.New("AWS's configuration cannot be read, or has no such profile as ONCEPOST_ALERT_AWS_PROFILE says")
	}
	if aw.Region == "" {
		return aws.Config{}, fmt.Errorf("%w, or ONCEPOST_ALERT_AWS_REGION", sesraw.ErrNoRegion)
	}
	return aw, nil
}

// send returns why SES has not accepted the mail, in words without an address.
func (m *mailer) send(ctx context.Context, limit time.Duration, n notice) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client, err := m.open(ctx)
	if err != nil {
		return err
	}
	raw, err := sesraw.Message{From: m.from, To: m.to, Subject: n.subject(), Text: n.Text}.Compose()
	if err != nil {
		return err
	}
	in := &ses.SendRawEmailInput{
		RawMessage: &types.RawMessage{Data: raw}, Source: aws.String(m.from.String()),
		Tags: []types.MessageTag{{Name: aws.String("event_type"), Value: aws.String("alert")}},
	}
	for _, to := range m.to {
		in.Destinations = append(in.Destinations, to.Address)
	}
	if _, err := client.SendRawEmail(ctx, in); err != nil {
		return refusal(err)
	}
	return nil
}

// notOfCodes is what no code of SES holds. A proxy may answer anything, addresses too.
var notOfCodes = regexp.MustCompile(`[^A-Za-z0-9]`)

// refusal says in words why SES has not accepted a mail. SES's own are not repeated: they hold addresses.
func refusal(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return unanswered(err)
	}
	why := ""
	for text, meaning := range map[string]string{
		"sending paused": ": sending is paused for the account", "not verified": ": the sender, or in the sandbox a recipient, is not verified",
		"daily message quota": ": the quota of the day is used up", "sending rate": ": the sending rate is exceeded",
	} {
		if strings.Contains(strings.ToLower(api.ErrorMessage()), text) {
			why = meaning
		}
	}
	code := notOfCodes.ReplaceAllString(api.ErrorCode(), "")
	return fmt.Errorf("SES refuses it with %s%s", code[:min(len(code), 60)], why)
}

func unanswered(err error) error {
	var response *awshttp.ResponseError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &response) && response.HTTPStatusCode() != 0:
		return fmt.Errorf("SES's answer with HTTP status %d cannot be read", response.HTTPStatusCode())
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("SES did not answer in time")
	case strings.Contains(err.Error(), "get credentials"), strings.Contains(err.Error(), "failed to sign"): // the SDK has no type for it
		return errors.New("there are no AWS credentials to be had")
	}
	return errors.New("SES cannot be reached")
}
