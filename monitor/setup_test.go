package monitor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/schemas"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// quick are small thresholds, but so large that a busy machine raises no alarm.
var quick = Thresholds{
	NoRelay: soon, NoWorker: soon, Stalled: soon, DatabaseAway: soon, TemporalAway: soon, OldestRow: soon, Stuck: soon, Parked: soon,
	Failed: 1, Clear: 2 * time.Second, // longer than the pause between two looks
}

const soon = 5 * time.Second

// fakeTemporal is a Temporal that counts as it is told, and can be away.
type fakeTemporal struct {
	client.Client
	mu      sync.Mutex
	away    bool
	refuses string           // queries with this in them
	counts  map[string]int64 // by a part of the query
}

func (f *fakeTemporal) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeTemporal) WorkflowService() workflowservice.WorkflowServiceClient {
	return &service{of: f}
}

// service is its gRPC side.
type service struct {
	workflowservice.WorkflowServiceClient
	of *fakeTemporal
}

func (s *service) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.away {
		return nil, errors.New("nobody answers")
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (f *fakeTemporal) CountWorkflow(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != "" && strings.Contains(r.GetQuery(), f.refuses) {
		return nil, errors.New("invalid query")
	}
	for _, c := range []struct{ name, query string }{
		{"parked", ListsAt(time.Time{}, quick).ParkedLong},
		{"stuck", ListsAt(time.Time{}, quick).Stuck},
		{"tasks", ListsAt(time.Time{}, quick).TasksFail},
		{"failed", ListsAt(time.Time{}, quick).Failed},
	} {
		if alike(r.GetQuery(), c.query) {
			return &workflowservice.CountWorkflowExecutionsResponse{Count: f.counts[c.name]}, nil
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

// alike compares two queries but for the times in them.
func alike(a, b string) bool {
	const year = 25 // '2026-12-01T00:00:00Z' with its quotes is shorter
	mask := func(s string) string {
		out := []byte(s)
		for i := 0; i+5 < len(out); i++ {
			if out[i] == '\'' && out[i+5] == '-' {
				for j := i + 1; j < len(out) && out[j] != '\'' && j < i+year; j++ {
					out[j] = 'x'
				}
			}
		}
		return string(out)
	}
	return mask(a) == mask(b)
}

func (*service) DescribeTaskQueue(context.Context, *workflowservice.DescribeTaskQueueRequest, ...grpc.CallOption) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Stats: &taskqueuepb.TaskQueueStats{}}, nil
}

// people hear notices.
type people struct {
	mu    sync.Mutex
	heard []Notice
	fail  bool // nobody can be reached
}

func (p *people) tell(_ context.Context, n Notice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail {
		return errors.New("SES is away")
	}
	p.heard = append(p.heard, n)
	return nil
}

func (p *people) set(fail bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = fail
}

// of are the notices of a condition: how often it began, and how often it was over.
func (p *people) of(name string) (begun, over int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.heard {
		switch {
		case n.Name != name:
		case n.Over:
			over++
		default:
			begun++
		}
	}
	return begun, over
}

// names are the conditions of which people have heard.
func (p *people) names() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.heard {
		if !slices.Contains(all, n.Name) {
			all = append(all, n.Name)
		}
	}
	return all
}

func (p *people) await(t *testing.T, name string, begun, over int) {
	t.Helper()
	testdb.Eventually(t, name, func() bool {
		b, o := p.of(name)
		return b >= begun && o >= over
	})
	if b, o := p.of(name); b != begun || o != over {
		t.Errorf("%s began %d times and was over %d times, want %d and %d", name, b, o, begun, over)
	}
}

// world is a pipeline of which only the signs of life are there.
type world struct {
	*testing.T
	s        *testdb.Schema
	temporal *fakeTemporal
	people   *people
	relay    *Relay // what the relay says of itself; guarded by temporal.mu
	stop     map[string]func()
}

func newWorld(t *testing.T, s *testdb.Schema) *world {
	t.Helper()
	if _, err := migrate.Up(t.Context(), s.DB); err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, s: s, temporal: &fakeTemporal{counts: map[string]int64{}}, people: &people{}, stop: map[string]func(){},
		relay: &Relay{Shards: []int{0, 1, 2}, Conditions: map[string]string{}},
	}
	w.begin(RoleRelay)
	w.begin(RoleWorker)
	return w
}

func eachWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		f(newWorld(t, s))
	})
}

// begin lets a process of a role live, until it is killed.
func (w *world) begin(role string) {
	w.Helper()
	b := NewBeat(BeatConfig{
		DB: w.s.DB, Role: role, Version: "test", Every: quick.BeatEvery(), Logger: discard,
		Publish: func() Published {
			if role == RoleWorker {
				return Published{Worker: &Worker{TaskQueues: []string{schemas.WorkflowTaskQueue, schemas.SendTaskQueue}, Sends: map[string]int64{"sent": 2}}}
			}
			w.temporal.mu.Lock()
			defer w.temporal.mu.Unlock()
			r := *w.relay
			return Published{Relay: &r}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			b.note(ctx, b.write(ctx))
			select {
			case <-ctx.Done():
			case <-time.After(b.every):
			}
		}
	}()
	end := sync.OnceFunc(func() { cancel(); <-done })
	w.stop[role] = end
	w.Cleanup(end)
}

// kill ends a process as SIGKILL does: its row stays.
func (w *world) kill(role string) { w.stop[role]() }

// watch runs a Watch until the test ends.
func (w *world) watch(change ...func(*Config)) *Watch {
	w.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: w.s.DSN, Logger: discard})
	if err != nil {
		w.Fatal(err)
	}
	cfg := Config{
		DB: db, Client: w.temporal, Namespace: "n", Logger: discard, Thresholds: quick, Tell: w.people.tell,
	}
	for _, f := range change {
		f(&cfg)
	}
	watch, err := NewWatch(cfg)
	if err != nil {
		w.Fatal(err)
	}
	beat := NewBeat(BeatConfig{
		DB: db, Role: RoleWatch, Every: quick.BeatEvery(), Logger: cfg.Logger, Publish: func() Published { return watch.Publish(Published{}) },
		Wrote: watch.Wrote,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { watch.Run(ctx) })
	all.Go(func() { beat.Run(ctx) })
	w.Cleanup(func() {
		cancel()
		all.Wait()
		if err := db.Close(); err != nil {
			w.Log(err) // the test may have killed the server
		}
	})
	return watch
}

var discard = slog.New(slog.DiscardHandler)

func containsSecret(err error) bool { return strings.Contains(err.Error(), "secret") }
