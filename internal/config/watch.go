package config

import (
	"time"

	"github.com/oncepost/oncepost/monitor"
)

// Watch says what is worth telling people, and where this process shows itself.
type Watch struct {
	Thresholds `embed:"" prefix:"watch-"`

	Heartbeat string  `name:"heartbeat-url" env:"ONCEPOST_HEARTBEAT_URL" placeholder:"URL" help:"Is asked (GET) every minute while this process watches, for a service elsewhere that tells you when it is missed. Keep it in the environment if it holds a secret."`
	Listen    *string `name:"listen" env:"ONCEPOST_LISTEN" placeholder:"ADDRESS" help:"Where the status page, /status.json, /metrics, /healthz and /readyz are; off for nowhere. Nothing of it asks for a password. Default: 127.0.0.1:9470 for a relay, :9471 for a worker, :9472 for a watch; where that is taken, nowhere, with a warning."`
	UI        string  `name:"temporal-ui" env:"ONCEPOST_TEMPORAL_UI" placeholder:"URL" help:"The Temporal web UI, for links on the status page: http://localhost:8233 or https://cloud.temporal.io."`
}

// Thresholds are monitor.Thresholds as flags.
type Thresholds struct {
	NoRelay      time.Duration `name:"no-relay" env:"ONCEPOST_WATCH_NO_RELAY" default:"30s" help:"Tell people when no relay has given a sign of life for so long."`
	NoWorker     time.Duration `name:"no-worker" env:"ONCEPOST_WATCH_NO_WORKER" default:"30s" help:"The same of workers."`
	Stalled      time.Duration `name:"stalled" env:"ONCEPOST_WATCH_STALLED" default:"30s" help:"... when a relay lives, and has not read the outbox for so long."`
	DatabaseAway time.Duration `name:"database-away" env:"ONCEPOST_WATCH_DATABASE_AWAY" default:"30s" help:"... when the database could not be read and written for so long."`
	TemporalAway time.Duration `name:"temporal-away" env:"ONCEPOST_WATCH_TEMPORAL_AWAY" default:"30s" help:"... when Temporal could not be reached for so long."`
	OldestRow    time.Duration `name:"oldest-row" env:"ONCEPOST_WATCH_OLDEST_ROW" default:"60s" help:"... when a row has been seen waiting for its start for so long."`
	Stuck        time.Duration `name:"stuck" env:"ONCEPOST_WATCH_STUCK" default:"15m" help:"... when a message has been at its send for so long after it was due."`
	Parked       time.Duration `name:"parked" env:"ONCEPOST_WATCH_PARKED" default:"1h" help:"... when a message has waited for a person for so long."`
	Failed       int           `name:"failed" env:"ONCEPOST_WATCH_FAILED" default:"1" help:"... when so many messages can never start."`
	Clear        time.Duration `name:"clear" env:"ONCEPOST_WATCH_CLEAR" default:"10s" help:"A condition is over when it has not been seen for so long."`
}

// Monitor are the thresholds as package monitor has them.
func (t Thresholds) Monitor() monitor.Thresholds {
	return monitor.Thresholds{
		NoRelay: t.NoRelay, NoWorker: t.NoWorker, Stalled: t.Stalled, DatabaseAway: t.DatabaseAway, TemporalAway: t.TemporalAway,
		OldestRow: t.OldestRow, Stuck: t.Stuck, Parked: t.Parked, Failed: t.Failed, Clear: t.Clear,
	}
}

// CheckWatch refuses numbers that make no sense.
func (w Watch) CheckWatch() error {
	if err := w.Monitor().Validate(); err != nil {
		return UsageError{err}
	}
	return nil
}
