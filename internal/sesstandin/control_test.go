package sesstandin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

const jsonType = "application/json"

func TestFaultsOverHTTP(t *testing.T) {
	s := start(t, sesstandin.Config{})
	for _, tc := range []struct {
		name, contentType, body string
		status                  int
	}{
		{"preset", jsonType, `{"preset":"throttle","times":1,"match":"you@"}`, 201},
		{"own", jsonType, `{"error":{"code":"X","status":500},"delay":"1ms"}`, 201},
		{"unknown field", jsonType, `{"preset":"throttle","tiems":1}`, 400},
		{"unknown preset", jsonType, `{"preset":"x"}`, 400},
		{"preset and effect", jsonType, `{"preset":"throttle","garbage":true}`, 400},
		{"no effect", jsonType, `{}`, 400},
		{"number for a duration", jsonType, `{"delay":3}`, 400},
		{"a form of another page", "text/plain", `{"preset":"throttle"}`, 415},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if status, _, body := s.do("POST", "/_standin/faults", tc.contentType, tc.body); status != tc.status {
				t.Errorf("status %d, want %d: %s", status, tc.status, body)
			}
		})
	}
	wantAPIError(t, s.send(t.Context(), ""), "Throttling", "")
	wantAPIError(t, s.send(t.Context(), ""), "X", "")
	var faults []sesstandin.FaultStatus
	_, _, body := s.do("GET", "/_standin/faults", "", "")
	if err := json.Unmarshal([]byte(body), &faults); err != nil || len(faults) != 1 || faults[0].Fired != 1 {
		t.Errorf("faults %s (%v)", body, err)
	}
	if status, _, _ := s.do("DELETE", "/_standin/faults", "", ""); status != http.StatusNoContent {
		t.Errorf("DELETE: status %d", status)
	}
	if err := s.send(t.Context(), ""); err != nil {
		t.Errorf("after DELETE: %v", err)
	}
}

func TestMailsOverHTTP(t *testing.T) {
	s := start(t, sesstandin.Config{})
	if _, _, body := s.do("GET", "/_standin/mails", "", ""); strings.TrimSpace(body) != "[]" {
		t.Errorf("no mails: %s", body)
	}
	if err := errors.Join(s.send(t.Context(), "m1"), s.send(t.Context(), "b64_bToy")); err != nil {
		t.Fatal(err)
	}
	get := func(query string) []sesstandin.Mail {
		t.Helper()
		var mails []sesstandin.Mail
		_, _, body := s.do("GET", "/_standin/mails"+query, "", "")
		if err := json.Unmarshal([]byte(body), &mails); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return mails
	}
	if got := get(""); len(got) != 2 {
		t.Errorf("%d mails", len(got))
	}
	got := get("?message_id=m:2&wait=10s")
	if len(got) != 1 || got[0].MessageID != "m:2" || got[0].Text != "It works.\r\n" || len(got[0].Raw) == 0 {
		t.Errorf("mails %+v", got)
	}
	if got := get("?at_least=5&wait=1ms"); len(got) != 2 {
		t.Errorf("%d mails after an unfulfilled wait", len(got))
	}
	if status, _, _ := s.do("GET", "/_standin/mails?wait=x", "", ""); status != http.StatusBadRequest {
		t.Errorf("bad wait: status %d", status)
	}
	if _, _, body := s.do("GET", "/_standin/requests", "", ""); strings.TrimSpace(body) != `{"SendRawEmail":2}` {
		t.Errorf("requests %s", body)
	}
	if status, _, _ := s.do("DELETE", "/_standin/mails", "", ""); status != http.StatusNoContent {
		t.Errorf("DELETE: status %d", status)
	}
	s.accepted(0)
}

// A page of another site that is open in the same browser can change nothing.
func TestOtherSitesAreKeptOut(t *testing.T) {
	s := start(t, sesstandin.Config{})
	for _, target := range []struct{ method, path string }{{"POST", "/faults"}, {"DELETE", "/_standin/mails"}, {"POST", "/"}} {
		req, err := http.NewRequestWithContext(t.Context(), target.method, s.url+target.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "https://elsewhere.example.com")
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if status, _, _ := s.roundTrip(req); status != http.StatusForbidden {
			t.Errorf("%s %s: status %d", target.method, target.path, status)
		}
	}
}

func TestWait(t *testing.T) {
	s := start(t, sesstandin.Config{})
	asked := make(chan int, 100)
	type result struct {
		mails []sesstandin.Mail
		err   error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		mails, err := s.Wait(ctx, func(m []sesstandin.Mail) bool { asked <- len(m); return len(m) == 2 })
		done <- result{mails, err}
	}()
	for i := range 2 {
		if got := <-asked; got != i { // it has looked, and sleeps until the next mail
			t.Fatalf("asked about %d mails, want %d", got, i)
		}
		if err := s.send(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if r := <-done; r.err != nil || len(r.mails) != 2 {
		t.Errorf("Wait returned %d mails, %v", len(r.mails), r.err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if mails, err := s.Wait(ended, func([]sesstandin.Mail) bool { return false }); !errors.Is(err, context.Canceled) || len(mails) != 2 {
		t.Errorf("Wait with an ended context: %d mails, %v", len(mails), err)
	}
}

func TestCloseIsIdempotentAndFinal(t *testing.T) {
	s := start(t, sesstandin.Config{Dir: t.TempDir()})
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), l); !errors.Is(err, sesstandin.ErrClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
}

func TestSenselessConfig(t *testing.T) {
	for name, cfg := range map[string]sesstandin.Config{
		"WorkflowURL":         {WorkflowURL: "http://localhost/workflows"},
		"WorkflowURL scheme":  {WorkflowURL: "javascript:alert({message_id})"},
		"Quota.Max24HourSend": {Quota: sesstandin.Quota{Max24HourSend: -2}},
		"Quota.MaxSendRate":   {Quota: sesstandin.Quota{MaxSendRate: -1}},
		"MaxMails":            {MaxMails: -1},
	} {
		var bad *sesstandin.ConfigError
		if _, err := sesstandin.New(cfg); !errors.As(err, &bad) || !strings.HasPrefix(name, bad.Field) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
