package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/config"
)

type alertCmd struct {
	config.Alerts `embed:""`

	Title  string            `name:"title" env:"ONCEPOST_ALERT_TITLE" required:"" placeholder:"TEXT" help:"What has happened, in a line: the subject of the mail."`
	Detail string            `name:"detail" env:"ONCEPOST_ALERT_DETAIL" placeholder:"TEXT" help:"The rest; - reads standard input, for 5 seconds at most: what has come by then is sent."`
	Fields map[string]string `name:"field" env:"ONCEPOST_ALERT_FIELDS" mapsep:"none" placeholder:"NAME=VALUE" help:"A name and a value to list below; may be repeated."`
	Key    string            `name:"key" env:"ONCEPOST_ALERT_KEY" placeholder:"TEXT" help:"What makes two alerts the same to who reads the webhook or the log. Default: the title."`
}

// Help is what kong prints below the summary.
func (alertCmd) Help() string {
	return `The alert goes to SES straight away, without a database and without Temporal; where SES refuses it or is away, to the webhook; and always to the error log (standard error). All of it takes 15 seconds at most, and at most 5 more for reading standard input.

Exit codes: 0, somebody was reached: SES or the webhook has accepted the alert. 1, nobody was: the alert is on standard error, and why. 2, the call was wrong. A run remembers nothing of others: each one sends.

A setting that is wrong keeps no alert from leaving another way.

oncepost alert --title 'backup failed' --detail - <backup.log`
}

func (c *alertCmd) Run(a *app) error {
	if c.Detail == "-" {
		c.Detail = readFor(a.stdin, detailTimeout)
	}
	cfg := c.Config(a.logger)
	alerter, _ := alerts.New(cfg) // what is wrong is in the error of Send, which uses what is right
	err := alerter.Send(a.ctx, alerts.Alert{Title: c.Title, Detail: c.Detail, Fields: c.Fields, Key: c.Key})
	var failed *alerts.Error
	switch {
	case errors.As(err, &failed) && failed.Reached():
		fmt.Fprintln(a.stderr, "oncepost: "+err.Error())
		return nil
	case !cfg.Set():
		return config.UsageError{Err: err}
	}
	return err
}

const (
	detailTimeout = 5 * time.Second
	maxDetail     = 128 << 10 // package alerts cuts at less
)

// readFor reads until the end or until the time is up: a pipe that hangs must not hold up an alert. Its goroutine ends with
// the process.
func readFor(r io.Reader, d time.Duration) string {
	var b limited
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.Copy(&b, r); err != nil {
			fmt.Fprintf(&b, "\n(standard input broke off: %v)", err)
		}
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		fmt.Fprintf(&b, "\n(standard input did not end in %s)", d)
	}
	return b.String()
}

// limited keeps the first maxDetail bytes.
type limited struct {
	mu   sync.Mutex
	text []byte
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p[:min(len(p), maxDetail-len(l.text))]...)
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
