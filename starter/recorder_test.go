package starter

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// recorder is a Starter that notes what it is asked to start. Like Temporal it refuses an ID that it has started.
type recorder struct {
	mu        sync.Mutex
	starts    map[string]int // successful and refused
	order     []string
	delays    map[string]time.Duration
	payloads  map[string]string
	answer    answer // nil: Started
	namespace string
	away      bool // Namespace fails
	attempts  map[string]int
	changed   chan struct{}
}

// answer is what a start comes to.
type answer func(ctx context.Context, row *outbox.Row, attempt int) Outcome

// answerTo gives o to messages whose ID begins with prefix, and starts the others.
func answerTo(prefix string, o Outcome) answer {
	return func(_ context.Context, row *outbox.Row, _ int) Outcome {
		if strings.HasPrefix(row.MessageID, prefix) {
			return o
		}
		return Outcome{}
	}
}

// answerWhile gives o while on is set, and starts all when it is not.
func answerWhile(on *atomic.Bool, o Outcome) answer {
	return func(context.Context, *outbox.Row, int) Outcome {
		if on.Load() {
			return o
		}
		return Outcome{}
	}
}

// answerAfter starts all, which takes d.
func answerAfter(d time.Duration) answer {
	return func(ctx context.Context, _ *outbox.Row, _ int) Outcome {
		sleep(ctx, d)
		return Outcome{}
	}
}

// answerHeld starts nothing before release is called or the test ends, whatever becomes of the start's own context.
func answerHeld(t *testing.T) (held answer, release func()) {
	released := make(chan struct{})
	return func(context.Context, *outbox.Row, int) Outcome {
		select {
		case <-released:
		case <-t.Context().Done():
		}
		return Outcome{}
	}, func() { close(released) }
}

func newRecorder() *recorder {
	return &recorder{
		starts: map[string]int{}, delays: map[string]time.Duration{}, payloads: map[string]string{},
		attempts: map[string]int{}, namespace: "uuid-1", changed: make(chan struct{}),
	}
}

func (r *recorder) Start(ctx context.Context, row *outbox.Row, delay time.Duration) Outcome {
	r.mu.Lock()
	r.attempts[row.MessageID]++
	attempt, answer := r.attempts[row.MessageID], r.answer
	payload := string(row.Payload)
	r.mu.Unlock()
	var o Outcome
	if answer != nil {
		o = answer(ctx, row, attempt)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.settled() {
		if r.starts[row.MessageID]++; r.starts[row.MessageID] > 1 {
			o.Class = Duplicate
		}
		r.order = append(r.order, row.MessageID)
		r.delays[row.MessageID] = delay
		r.payloads[row.MessageID] = payload
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return o
}

func (r *recorder) Namespace(context.Context) (name, id string, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return "default", "", Outcome{Class: Away, Reason: "no frontend"}
	}
	return "default", r.namespace, Outcome{}
}

func (r *recorder) set(f func(*recorder)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// await waits until the recorder is as wanted, or fails the test.
func (r *recorder) await(t *testing.T, what string, wanted func(*recorder) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		ok, changed := wanted(r), r.changed
		n := len(r.starts)
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("not within 30 s: %s (%d messages started)", what, n)
		}
	}
}

func (r *recorder) count(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[id]
}

func (r *recorder) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.starts)
}

// conditions collects what relays report.
type conditions struct {
	mu  sync.Mutex
	all []Condition
}

// said tells whether an active condition was reported with these words.
func (c *conditions) said(name, words string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.all, func(cond Condition) bool {
		return cond.Name == name && cond.Active && strings.Contains(cond.Detail, words)
	})
}

func (c *conditions) report(cond Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, cond)
}

func (c *conditions) find(name string, active bool) (n int, last Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cond := range c.all {
		if cond.Name == name && cond.Active == active {
			n++
			last = cond
		}
	}
	return n, last
}

func (c *conditions) await(t *testing.T, name string, active bool) Condition {
	t.Helper()
	var cond Condition
	testdb.Eventually(t, fmt.Sprintf("condition %s active=%v", name, active), func() bool {
		var n int
		n, cond = c.find(name, active)
		return n > 0
	})
	return cond
}

// quick are settings under which a test need not wait for long.
func quick() Config {
	return Config{
		minBackoff: 10 * time.Millisecond, maxBackoff: 200 * time.Millisecond, tick: 20 * time.Millisecond,
		callTimeout: 3 * time.Second, linger: 10 * time.Millisecond, suspicion: 10 * time.Millisecond,
		Grace: 10 * time.Second,
	}
}

// running is a relay under test.
type running struct {
	*Relay
	conds *conditions
	stop  func() error // stops and waits; idempotent
}

func startRelay(t *testing.T, s *testdb.Schema, starter Starter, cfg Config) *running {
	t.Helper()
	return startRelayAt(t, s, s.DSN, starter, cfg, nil)
}

func startRelayAt(t *testing.T, _ *testdb.Schema, dsn string, starter Starter, cfg Config, prepare func(*Relay)) *running {
	t.Helper()
	return startRelayOn(t, openDSN(t, dsn), starter, cfg, prepare)
}

func startRelayOn(t *testing.T, db *sql.DB, starter Starter, cfg Config, prepare func(*Relay)) *running {
	t.Helper()
	conds := &conditions{}
	cfg.Report = conds.report
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := New(db, starter, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	var result error
	stop := func() error {
		cancel()
		once.Do(func() { result = <-done })
		return result
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("relay: %v", err)
		}
	})
	return &running{Relay: r, conds: conds, stop: stop}
}

// startHeld starts a relay with n starts in flight, which end when release is called. They must be fewer than its first limit.
func startHeld(t *testing.T, s *testdb.Schema, n int) (relay *running, rec *recorder, release func()) {
	t.Helper()
	rec = newRecorder()
	rec.answer, release = answerHeld(t)
	relay = startRelay(t, s, rec, quick())
	awaitShared(t, relay)
	enqueue(t, s, messages("m", n)...)
	testdb.Eventually(t, fmt.Sprintf("%d starts in flight", n), func() bool { return relay.Stats().InFlight == int64(n) })
	return relay, rec, release
}

// eachMigrated runs test on both servers with oncepost's tables in a fresh database.
func eachMigrated(t *testing.T, test func(t *testing.T, s *testdb.Schema)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		test(t, s)
	})
}

func migrated(t *testing.T, s *testdb.Schema) {
	t.Helper()
	if _, err := migrate.Up(t.Context(), s.DB); err != nil {
		t.Fatal(err)
	}
}

func enqueue(t *testing.T, s *testdb.Schema, ms ...outbox.Message) []string {
	t.Helper()
	var all []string
	for len(ms) > 0 {
		n := min(len(ms), 500)
		ids, err := outbox.EnqueueMany(t.Context(), s.DB, ms[:n])
		if err != nil {
			t.Fatal(err)
		}
		all, ms = append(all, ids...), ms[n:]
	}
	return all
}

// hold is a producer's open transaction that has enqueued pending IDs again: it has their rows locked.
func hold(t *testing.T, s *testdb.Schema, ids ...string) *sql.Tx {
	t.Helper()
	tx, err := s.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := outbox.Enqueue(t.Context(), tx, message(id)); err == nil {
			t.Fatal("a pending ID was accepted twice")
		}
	}
	return tx
}

func message(id string) outbox.Message {
	return outbox.Message{ID: id, EventType: "welcome", Payload: map[string]string{"for": id}}
}

func messages(prefix string, n int) []outbox.Message {
	ms := make([]outbox.Message, n)
	for i := range ms {
		ms[i] = message(fmt.Sprintf("%s:%05d", prefix, i))
	}
	return ms
}

func pending(t *testing.T, s *testdb.Schema) int {
	t.Helper()
	n, err := outbox.Table{}.Pending(t.Context(), s.DB, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func failedRows(t *testing.T, s *testdb.Schema) map[string]string {
	t.Helper()
	rows, err := s.DB.QueryContext(t.Context(), "SELECT message_id, reason FROM outbox_failed")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var id, reason string
		if err := rows.Scan(&id, &reason); err != nil {
			t.Fatal(err)
		}
		out[id] = reason
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
