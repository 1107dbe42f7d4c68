package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is stdout of a running command: readable while it is written, ready once the banner is out.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	ready chan struct{}
	once  sync.Once
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.buf.Write(p)
	o.once.Do(func() { close(o.ready) }) // the banner is one write
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var baseURL = regexp.MustCompile(`AWS_ENDPOINT_URL_SES=(http://\S+)`)

// launch runs the command until stop, which returns its error and how long the end took.
func launch(t *testing.T, args ...string) (out, url string, stop func() (time.Duration, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &output{ready: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, o, io.Discard) }()
	select {
	case <-o.ready:
	case err := <-done:
		t.Fatalf("ended at once: %v", err)
	}
	match := baseURL.FindStringSubmatch(o.String())
	if match == nil {
		t.Fatalf("no address in the banner:\n%s", o)
	}
	stopped := sync.OnceValues(func() (time.Duration, error) {
		began := time.Now()
		cancel()
		err := <-done
		return time.Since(began), err
	})
	t.Cleanup(func() { _, _ = stopped() }) // tests that care have looked at the error
	return o.String(), match[1], stopped
}

// post makes one API call on a connection of its own.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

const send = "Action=SendEmail&Source=a%40example.com&Destination.ToAddresses.member.1=b%40example.com" +
	"&Message.Subject.Data=Hello&Message.Body.Text.Data=hi"

func TestRunServesAndStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mails")
	for want := 1; want <= 2; want++ { // the second start finds the mail of the first
		out, url, stop := launch(t, "--listen=127.0.0.1:0", "--dir", dir, "--workflow-url=http://localhost:8233/w/{message_id}")
		if strings.Contains(out, "WARNING") || !strings.Contains(out, dir) {
			t.Errorf("banner:\n%s", out)
		}
		if status, answer := post(t, url, send); status != http.StatusOK {
			t.Fatalf("send: %d %s", status, answer)
		}
		if _, answer := post(t, url, "Action=GetSendQuota"); !strings.Contains(answer, "<SentLast24Hours>"+string(rune('0'+want))+"<") {
			t.Errorf("start %d: %s", want, answer)
		}
		if took, err := stop(); err != nil || took > time.Second {
			t.Errorf("stop: %v after %v", err, took)
		}
	}
}

// A request that a scripted delay holds does not hold the end.
func TestStopIsQuickWithARequestHeld(t *testing.T) {
	_, url, stop := launch(t, "--listen=127.0.0.1:0", "--fault=timeout")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	held := make(chan struct{})
	go func() {
		defer close(held)
		resp, err := client.Post(url, "application/x-www-form-urlencoded", strings.NewReader(send))
		if err == nil {
			resp.Body.Close()
		}
	}()
	for deadline := time.Now().Add(10 * time.Second); ; {
		resp, err := client.Get(url + "/_standin/faults")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the request never came: %s %v", body, err)
		}
		if strings.Contains(string(body), `"fired":1`) {
			break
		}
	}
	if took, err := stop(); err != nil || took > time.Second {
		t.Errorf("stop: %v after %v", err, took)
	}
	<-held
}

func TestFaultQuotaAndEnvironment(t *testing.T) {
	t.Setenv("ONCEPOST_SES_FAULT", "paused")
	t.Setenv("ONCEPOST_SES_MAX_24_HOUR_SEND", "7")
	t.Setenv("ONCEPOST_SES_LISTEN", "127.0.0.1:0")
	out, url, _ := launch(t)
	if !strings.Contains(out, "paused") {
		t.Errorf("banner:\n%s", out)
	}
	if status, answer := post(t, url, send); status != http.StatusBadRequest || !strings.Contains(answer, "Sending paused") {
		t.Errorf("send: %d %s", status, answer)
	}
	if _, answer := post(t, url, "Action=GetSendQuota"); !strings.Contains(answer, "<Max24HourSend>7<") {
		t.Errorf("quota: %s", answer)
	}
}

func TestWarnsWhenBoundElsewhere(t *testing.T) {
	out, _, _ := launch(t, "--listen=0.0.0.0:0")
	if !strings.Contains(out, "WARNING") || !strings.Contains(out, "without authentication") {
		t.Errorf("banner:\n%s", out)
	}
}

func TestBadSettingsNameFlagAndVariable(t *testing.T) {
	for _, tc := range []struct{ arg, want string }{
		{"--listen=nowhere:x", "ONCEPOST_SES_LISTEN"},
		{"--workflow-url=http://localhost/", "ONCEPOST_SES_WORKFLOW_URL"},
		{"--max-send-rate=-3", "ONCEPOST_SES_MAX_SEND_RATE"},
		{"--max-24-hour-send=-3", "ONCEPOST_SES_MAX_24_HOUR_SEND"},
		{"--dir=/dev/null", "ONCEPOST_SES_DIR"},
		{"--fault=nonsense", "ONCEPOST_SES_FAULT"},
		{"--nonsense", "--nonsense"},
	} {
		err := run(t.Context(), []string{tc.arg}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want it to name %s", tc.arg, err, tc.want)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out, io.Discard); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "ONCEPOST_SES_DIR") || !strings.Contains(out.String(), "lost-answer") {
		t.Errorf("help:\n%s", out.String())
	}
}
