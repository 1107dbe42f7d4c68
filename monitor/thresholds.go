package monitor

import (
	"fmt"
	"time"
)

// Thresholds say from when on something is worth telling people. The zero value is the defaults.
type Thresholds struct {
	// NoRelay and NoWorker: none has written its row for so long. Default 30 s.
	NoRelay, NoWorker time.Duration
	// Stalled: a relay that lives has not read the outbox for so long. Default 30 s.
	Stalled time.Duration
	// DatabaseAway and TemporalAway: it could not be used for so long. Default 30 s.
	DatabaseAway, TemporalAway time.Duration
	// OldestRow: a row has been seen waiting for so long. Default 60 s.
	OldestRow time.Duration
	// Stuck: a workflow has been sending for so long. Default 15 min.
	Stuck time.Duration
	// Parked: a workflow has been parked for so long. Default 1 h.
	Parked time.Duration
	// Failed: so many messages are in outbox_failed. Default 1.
	Failed int
	// Clear: a condition is over when it has not been seen for so long. Default 10 s.
	Clear time.Duration
}

// WithDefaults fills in what is zero.
func (t Thresholds) WithDefaults() Thresholds {
	for of, otherwise := range map[*time.Duration]time.Duration{
		&t.NoRelay: 30 * time.Second, &t.NoWorker: 30 * time.Second, &t.Stalled: 30 * time.Second,
		&t.DatabaseAway: 30 * time.Second, &t.TemporalAway: 30 * time.Second, &t.OldestRow: time.Minute,
		&t.Stuck: 15 * time.Minute, &t.Parked: time.Hour, &t.Clear: 10 * time.Second,
	} {
		if *of == 0 {
			*of = otherwise
		}
	}
	if t.Failed == 0 {
		t.Failed = 1
	}
	return t
}

// Validate refuses what cannot work: processes write their rows every few seconds, so that less would be a false alarm.
func (t Thresholds) Validate() error {
	for name, d := range map[string]time.Duration{
		"no relay": t.NoRelay, "no worker": t.NoWorker, "stalled": t.Stalled, "database away": t.DatabaseAway,
		"Temporal away": t.TemporalAway, "oldest row": t.OldestRow, "stuck": t.Stuck, "parked": t.Parked,
	} {
		if d < least {
			return fmt.Errorf("monitor: the threshold of %s is %s, must be at least %s", name, d, least)
		}
	}
	if t.Failed < 1 || t.Clear <= 0 {
		return fmt.Errorf("monitor: the threshold of failed messages is %d, must be at least 1; the time to clear is %s, must be positive", t.Failed, t.Clear)
	}
	return nil
}

// least is the smallest threshold: a process writes its row every fourth of the smallest one, at most every 5 s.
const least = 3 * time.Second

// shortest is the smallest of the thresholds by which processes and servers are seen to be away.
func (t Thresholds) shortest() time.Duration {
	return min(t.NoRelay, t.NoWorker, t.Stalled, t.DatabaseAway, t.TemporalAway)
}

// BeatEvery is how often a process writes its row. All processes should have the same thresholds.
func (t Thresholds) BeatEvery() time.Duration { return min(5*time.Second, t.shortest()/4) }
