package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// webhook posts alerts as JSON. Its URL is a secret: it is in no error.
type webhook struct {
	url    string
	client *http.Client
}

func newWebhook(raw string) (*webhook, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("the alerts' webhook (ONCEPOST_ALERT_WEBHOOK) is not a URL like https://example.com/hook")
	}
	return &webhook{url: raw, client: &http.Client{
		Transport: alone(http.DefaultTransport),
		// A redirected POST would arrive as a GET, without the alert.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// alone is a transport that keeps no connections: alerts are rare.
func alone(t http.RoundTripper) http.RoundTripper {
	own, ok := t.(*http.Transport)
	if !ok { // the program has put its own in
		return t
	}
	own = own.Clone()
	own.DisableKeepAlives = true
	return own
}

// hookPause is between the two tries.
const hookPause = 300 * time.Millisecond

// send tries twice, the first time in half of what is left of the time.
func (w *webhook) send(ctx context.Context, n notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return errors.New("the alert cannot be written as JSON")
	}
	half := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	if err = w.post(half, body); err == nil {
		return nil
	}
	timer := time.NewTimer(hookPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return err
	case <-timer.C:
		return w.post(ctx, body)
	}
}

func (w *webhook) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("no request can be made of its URL")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(req)
	if err != nil {
		return noAnswer(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answers with HTTP status %d", resp.StatusCode)
	}
	// What it says is of no interest; that it has ended is what a connection's end needs.
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	return nil
}

// noAnswer says why there is none. The text of the error would repeat the URL.
func noAnswer(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return errors.New("it cannot be reached")
}
