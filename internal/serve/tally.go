package serve

import (
	"maps"
	"sync"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/monitor"
	"github.com/oncepost/oncepost/schemas"
)

// Tally is what a worker says of itself: how its sends have ended, and the account's quota. The zero value is ready.
type Tally struct {
	mu    sync.Mutex
	sends map[string]int64
	sent  time.Time
	quota *monitor.Quota
}

// answered counts an answer.
func (t *Tally) answered(a activities.Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sends == nil {
		t.sends = map[string]int64{}
	}
	t.sends[a.Verdict.String()]++
	if a.Verdict == activities.VerdictSent {
		t.sent = time.Now()
	}
}

// asked keeps the account's quota.
func (t *Tally) asked(q activities.Quota) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quota = &monitor.Quota{PerSecond: q.PerSecond, PerDay: q.PerDay, SentLast: q.SentLastDay}
}

// Worker is it as package monitor has it. Each outcome is in it from the start.
func (t *Tally) Worker() *monitor.Worker {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &monitor.Worker{TaskQueues: []string{schemas.WorkflowTaskQueue, schemas.SendTaskQueue}, Quota: t.quota, Sends: map[string]int64{}}
	for v := activities.VerdictSent; v <= activities.VerdictUnknown; v++ {
		w.Sends[v.String()] = 0
	}
	maps.Copy(w.Sends, t.sends)
	if !t.sent.IsZero() {
		ago := time.Since(t.sent).Seconds()
		w.SentAgo = &ago
	}
	return w
}
