package sesstandin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// Each preset fails as its meaning says, and the mail is in the inbox exactly when it says so.
func TestPresets(t *testing.T) {
	for _, tc := range []struct {
		preset, code, message string // no code: the client gets no readable answer
		status                int
		accepted              int
	}{
		{"throttle", "Throttling", "Maximum sending rate exceeded", 400, 0},
		{"daily-quota", "Throttling", "Daily message quota exceeded", 400, 0},
		{"paused", "MessageRejected", "Sending paused for this account", 400, 0},
		{"unverified", "MessageRejected", "Email address is not verified", 400, 0},
		{"reject", "MessageRejected", "", 400, 0},
		{"credentials", "InvalidClientTokenId", "", 403, 0},
		{"unavailable", "ServiceUnavailable", "", 503, 0},
		{"timeout", "", "", 0, 0},
		{"timeout-accepted", "", "", 0, 1},
		{"lost-answer", "", "", 0, 1},
		{"garbage", "", "", 0, 1},
	} {
		t.Run(tc.preset, func(t *testing.T) {
			s := start(t, sesstandin.Config{})
			f, err := sesstandin.Preset(tc.preset)
			if err != nil {
				t.Fatal(err)
			}
			s.inject(f)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if f.Delay > 0 || f.AnswerDelay > 0 {
				go giveUpOnceHeld(ctx, cancel, s, tc.accepted)
			}
			err = s.send(ctx, "m1")
			if tc.code != "" {
				wantAPIError(t, err, tc.code, tc.message)
				var resp *smithyhttp.ResponseError
				if !errors.As(err, &resp) || resp.HTTPStatusCode() != tc.status {
					t.Errorf("HTTP status of %v, want %d", err, tc.status)
				}
			} else if api := smithy.APIError(nil); err == nil || errors.As(err, &api) {
				t.Errorf("error %v, want one that leaves the outcome unknown", err)
			}
			s.accepted(tc.accepted)
		})
	}
}

// giveUpOnceHeld is a client whose patience ends when the stand-in holds its request.
func giveUpOnceHeld(ctx context.Context, cancel context.CancelFunc, s *stand, accepted int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		faults := s.Faults()
		if ctx.Err() != nil || len(faults) == 1 && faults[0].Fired == 1 && len(s.Mails()) == accepted {
			cancel()
			return
		}
	}
}

func TestEveryPresetIsValid(t *testing.T) {
	s := start(t, sesstandin.Config{})
	for _, p := range sesstandin.Presets() {
		s.inject(p.Fault)
	}
	if _, err := sesstandin.Preset("nonsense"); err == nil {
		t.Error("an unknown preset is no error")
	}
}

func TestDropBefore(t *testing.T) {
	s := start(t, sesstandin.Config{})
	s.inject(sesstandin.Fault{DropBefore: true, Times: 1})
	if err := s.send(t.Context(), ""); err == nil {
		t.Error("no error")
	}
	s.accepted(0)
	if err := s.send(t.Context(), ""); err != nil {
		t.Error(err)
	}
	s.accepted(1)
}

func TestAfterAndTimes(t *testing.T) {
	s := start(t, sesstandin.Config{})
	f, err := sesstandin.Preset("unavailable")
	if err != nil {
		t.Fatal(err)
	}
	f.After, f.Times = 2, 3
	s.inject(f)
	want := []bool{true, true, false, false, false, true, true}
	for i, ok := range want {
		if err := s.send(t.Context(), ""); (err == nil) != ok {
			t.Errorf("send %d: %v", i, err)
		}
	}
	if got := s.Faults(); len(got) != 0 {
		t.Errorf("used-up faults stay: %+v", got)
	}
}

func TestMatchAndAction(t *testing.T) {
	s := start(t, sesstandin.Config{})
	refuse := &sesstandin.APIError{Code: "MessageRejected"}
	s.inject(sesstandin.Fault{Match: "m:1", Error: refuse})
	s.inject(sesstandin.Fault{Match: "@bad.test", Error: refuse})
	s.inject(sesstandin.Fault{Action: "SendEmail", Error: refuse})
	for _, tc := range []struct {
		name, tag, to string
		ok            bool
	}{
		{"other", "m2", "you@example.com", true},
		{"message ID", "b64_bTox", "you@example.com", false},
		{"message ID as a part", "b64_bToxMA", "you@example.com", true},
		{"recipient", "m2", "you@bad.test", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := s.send(t.Context(), tc.tag, tc.to); (err == nil) != tc.ok {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := s.ses.GetSendQuota(t.Context(), &ses.GetSendQuotaInput{}); err != nil {
		t.Errorf("GetSendQuota: %v", err)
	}
	s.ClearFaults()
	s.inject(sesstandin.Fault{Action: sesstandin.AnyAction, Error: refuse})
	if _, err := s.ses.GetSendQuota(t.Context(), &ses.GetSendQuotaInput{}); err == nil {
		t.Error("GetSendQuota passes a fault for any action")
	}
}

func TestRefusesSenselessFaults(t *testing.T) {
	s := start(t, sesstandin.Config{})
	for name, f := range map[string]sesstandin.Fault{
		"no effect":           {Times: 1},
		"two effects":         {DropAfter: true, Garbage: true},
		"unknown action":      {Action: "Send", DropAfter: true},
		"negative":            {Times: -1, DropAfter: true},
		"no code":             {Error: &sesstandin.APIError{Message: "x"}},
		"no error status":     {Error: &sesstandin.APIError{Code: "X", Status: http.StatusOK}},
		"bad type":            {Error: &sesstandin.APIError{Code: "X", Type: "sender"}},
		"rate too low":        {MaxPerSecond: 0.001},
		"limit with delay":    {MaxPerSecond: 1, Delay: 1},
		"limit of a question": {Action: "GetAccountSendingEnabled", MaxPerSecond: 1},
		"send that says no":   {Action: "SendRawEmail", Negative: true},
	} {
		if _, err := s.Inject(f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Stopping does not wait for a scripted delay.
func TestStopEndsDelays(t *testing.T) {
	s := start(t, sesstandin.Config{})
	f, err := sesstandin.Preset("timeout")
	if err != nil {
		t.Fatal(err)
	}
	s.inject(f)
	failed := make(chan error, 1)
	go func() { failed <- s.send(context.Background(), "") }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(s.Faults()) == 0 || s.Faults()[0].Fired == 0 {
		if ctx.Err() != nil {
			t.Fatal("the request never came")
		}
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the held request succeeded")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("stopping took %v", took)
	}
}

// A client that leaves during Delay ends its request: the mail is not accepted later, and nothing
// goes on waiting for it.
func TestClientThatLeavesHasSentNothing(t *testing.T) {
	server, err := sesstandin.New(sesstandin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Inject(sesstandin.Fault{Delay: sesstandin.Duration(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		server.Handler().ServeHTTP(w, r)
	}))
	defer web.Close()
	defer server.Close() // first: it ends a request that waits in spite of all
	ctx, cancel := context.WithCancel(t.Context())
	go giveUpOnceHeld(ctx, cancel, &stand{Server: server}, 0)
	form := "Action=SendEmail&Source=a%40example.com&Destination.ToAddresses.member.1=b%40example.com&Message.Body.Text.Data=hi"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := web.Client().Do(req); err == nil {
		resp.Body.Close()
		t.Error("the request was answered")
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the request is still waiting")
	}
	if got := len(server.Mails()); got != 0 {
		t.Errorf("%d mails accepted", got)
	}
}
