package sesstandin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// stand is a running stand-in and the real SDK client pointed at it.
type stand struct {
	*sesstandin.Server
	t    *testing.T
	url  string
	http *http.Client
	ses  *ses.Client
}

func start(t *testing.T, cfg sesstandin.Config) *stand {
	t.Helper()
	server, err := sesstandin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		// A test may have closed it before the goroutine came to Serve.
		if err := <-served; err != nil && !errors.Is(err, sesstandin.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	url := "http://" + l.Addr().String()
	return &stand{Server: server, t: t, url: url, http: client, ses: ses.New(ses.Options{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String(url),
		HTTPClient:       client,
		Retryer:          aws.NopRetryer{},
		RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})}
}

// message is a small raw mail; edit changes its lines.
func message(edit ...string) []byte {
	raw := strings.Join([]string{
		"From: Shop <shop@example.com>", "To: you@example.com", "Subject: Hello",
		"Message-ID: <mine@example.com>", "Date: Mon, 2 Jan 2006 15:04:05 +0000",
		"MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "", "It works.", "",
	}, "\r\n")
	return []byte(strings.NewReplacer(edit...).Replace(raw))
}

// input is a raw send with the tag message_id.
func input(raw []byte, messageID string, to ...string) *ses.SendRawEmailInput {
	in := &ses.SendRawEmailInput{RawMessage: &types.RawMessage{Data: raw}, Destinations: to}
	if messageID != "" {
		in.Tags = []types.MessageTag{{Name: aws.String("message_id"), Value: aws.String(messageID)}}
	}
	return in
}

// send posts a small mail and returns the error.
func (s *stand) send(ctx context.Context, messageID string, to ...string) error {
	if len(to) == 0 {
		to = []string{"you@example.com"}
	}
	_, err := s.ses.SendRawEmail(ctx, input(message(), messageID, to...))
	return err
}

// do is a plain HTTP request.
func (s *stand) do(method, path, contentType, body string) (int, http.Header, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return s.roundTrip(req)
}

func (s *stand) inject(f sesstandin.Fault) {
	s.t.Helper()
	if _, err := s.Inject(f); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) accepted(want int) {
	s.t.Helper()
	if got := len(s.Mails()); got != want {
		s.t.Errorf("%d mails accepted, want %d", got, want)
	}
}

// wantAPIError checks an error of the service as the SDK reads it.
func wantAPIError(t *testing.T, err error, code, message string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("error %v, want code %s", err, code)
	}
	if api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), message) {
		t.Errorf("error %q %q, want %q with %q", api.ErrorCode(), api.ErrorMessage(), code, message)
	}
}

func (s *stand) roundTrip(req *http.Request) (int, http.Header, string) {
	s.t.Helper()
	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}
