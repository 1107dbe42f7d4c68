package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// pulse asks a URL every minute, for a service elsewhere that tells people when it is missed: of the death of everything at once
// nobody here can tell.
type pulse struct {
	url    string
	logger *slog.Logger
	client *http.Client
	silent bool
}

const (
	pulseEvery = time.Minute
	pulseCall  = 5 * time.Second
)

// newPulse returns nil where there is no URL.
func newPulse(address string, logger *slog.Logger) (*pulse, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("monitor: the heartbeat's URL must be like https://example.com/ping/…") // it may hold a secret
	}
	return &pulse{url: address, logger: logger, client: &http.Client{Timeout: pulseCall}}, nil
}

// run asks every minute, while the process looks, until ctx ends.
func (p *pulse) run(ctx context.Context, looks func() bool) {
	ticks := time.NewTicker(pulseEvery)
	defer ticks.Stop()
	for {
		if looks() {
			p.note(ctx, p.ask(ctx))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// note says once that nobody answers, and once that somebody does again.
func (p *pulse) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !p.silent:
		p.silent = true
		p.logger.Warn("the heartbeat does not arrive, will try again", "every", pulseEvery, "error", err)
	case err == nil && p.silent:
		p.silent = false
		p.logger.Info("the heartbeat arrives again")
	}
}

func (p *pulse) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return errors.New("the heartbeat's URL is not one")
	}
	response, err := p.client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err // the rest of it is the URL
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}
