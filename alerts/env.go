package alerts

import (
	"context"
	"os"
	"strings"
	"sync"
)

// environment is the settings as they stand in the environment.
type environment struct {
	from, to, profile, region, webhook, endpoint string
}

func readEnvironment() environment {
	return environment{
		from: os.Getenv("ONCEPOST_ALERT_FROM"), to: os.Getenv("ONCEPOST_ALERT_TO"),
		profile: os.Getenv("ONCEPOST_ALERT_AWS_PROFILE"), region: os.Getenv("ONCEPOST_ALERT_AWS_REGION"),
		webhook: os.Getenv("ONCEPOST_ALERT_WEBHOOK"), endpoint: os.Getenv("ONCEPOST_ALERT_ENDPOINT"),
	}
}

// FromEnvironment is the Config that the environment describes: ONCEPOST_ALERT_FROM, _TO (with commas between; none within a
// name), _AWS_PROFILE, _AWS_REGION, _WEBHOOK, and _ENDPOINT for a stand-in.
func FromEnvironment() Config { return readEnvironment().config() }

func (e environment) config() Config {
	return Config{
		From: e.from, To: SplitAddresses(e.to), AWSProfile: e.profile, AWSRegion: e.region, Webhook: e.webhook, Endpoint: e.endpoint,
	}
}

// SplitAddresses splits at commas, and drops what is empty.
func SplitAddresses(s string) (all []string) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// process is the Alerter of this process. It is package state because alerts are counted over all callers of Send.
var process struct {
	mu      sync.Mutex
	of      environment
	alerter *Alerter
}

// Send sends an alert as the environment says; see FromEnvironment and Alerter.Send. Where the environment is wrong, the
// error says so, and what is right of it is used.
func Send(ctx context.Context, alert Alert) error { return ofEnvironment().Send(ctx, alert) }

func ofEnvironment() *Alerter {
	now := readEnvironment()
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.alerter == nil || process.of != now {
		process.of = now
		process.alerter = build(now.config()) // what is wrong with it, each alert's error says
	}
	return process.alerter
}
