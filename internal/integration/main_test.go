package integration

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(envCashier); args != "" {
		fmt.Fprintln(os.Stderr, runCashier(strings.Split(args, "\n")))
		os.Exit(1)
	}
	code := testdb.Main(m)
	stopping.Wait()
	if stopFailed.Load() {
		code = max(code, 1)
	}
	os.Exit(code)
}

// A Temporal takes a second to stop, mostly waiting. The next test need not wait for that.
var (
	stopping   sync.WaitGroup
	stopFailed atomic.Bool
)

var attributes = map[string]enumspb.IndexedValueType{
	schemas.AttributeState: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	schemas.AttributeSince: enumspb.INDEXED_VALUE_TYPE_DATETIME,
}

// newTemporal starts a Temporal of the test's own.
func newTemporal(t *testing.T, attrs map[string]enumspb.IndexedValueType) *devtemporal.Server {
	t.Helper()
	return startTemporal(t, devtemporal.Options{SearchAttributes: attrs})
}

func startTemporal(t *testing.T, o devtemporal.Options) *devtemporal.Server {
	t.Helper()
	server, err := devtemporal.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	name := t.Name()
	t.Cleanup(func() {
		stopping.Go(func() {
			if err := server.Stop(); err != nil {
				stopFailed.Store(true)
				fmt.Fprintf(os.Stderr, "%s: stop Temporal: %v\n", name, err)
			}
		})
	})
	return server
}

// silent drops the SDK's logs; what matters is asserted.
func silent() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// dial makes a client whose calls pass through the interceptors.
func dial(t *testing.T, addr, namespace string, through ...grpc.UnaryClientInterceptor) client.Client {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{
		HostPort: addr, Namespace: namespace, Logger: silent(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(through...)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newNamespace makes a namespace for one database's subtest, and a client for it.
func newNamespace(t *testing.T, temporal *devtemporal.Server, s *testdb.Schema, prefix string, retention time.Duration) (string, client.Client) {
	t.Helper()
	name := prefix + "-" + string(s.Flavour)
	if err := temporal.CreateNamespace(t.Context(), name, retention); err != nil {
		t.Fatal(err)
	}
	return name, dial(t, temporal.FrontendAddr(), name)
}

// countWorkflows waits until so many workflows fit a visibility query, and sees to it that there are no more.
func countWorkflows(t *testing.T, c client.Client, want int64, query string) {
	t.Helper()
	count := func() int64 {
		r, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetCount()
	}
	testdb.Eventually(t, fmt.Sprintf("%d workflows with %s", want, query), func() bool { return count() >= want })
	if n := count(); n != want {
		t.Errorf("%d workflows with %s, want %d", n, query, want)
	}
}

// conditions notes what a relay reports.
type conditions struct {
	mu  sync.Mutex
	all []starter.Condition
}

func (c *conditions) report(cond starter.Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, cond)
}

func (c *conditions) await(t *testing.T, name string) starter.Condition {
	t.Helper()
	return c.awaitReport(t, name, true)
}

// awaitPassed waits until a condition is over.
func (c *conditions) awaitPassed(t *testing.T, name string) {
	t.Helper()
	c.awaitReport(t, name, false)
}

func (c *conditions) awaitReport(t *testing.T, name string, active bool) (found starter.Condition) {
	t.Helper()
	testdb.Eventually(t, fmt.Sprintf("condition %s active=%v", name, active), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, cond := range c.all {
			if cond.Name == name && cond.Active == active {
				found = cond
				return true
			}
		}
		return false
	})
	return found
}

// runRelay runs a relay until the test ends, or until the returned function is called.
func runRelay(t *testing.T, dsn string, c client.Client, namespace string, cfg starter.Config) (*starter.Relay, *conditions, func()) {
	t.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	conds := &conditions{}
	cfg.Report = conds.report
	relay, err := starter.New(db, starter.NewTemporal(c, starter.TemporalConfig{Namespace: namespace}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return relay, conds, stop
}

// mailbox is a Mailer that keeps what it is given, and when.
type mailbox struct {
	mu    sync.Mutex
	mails []activities.Mail
	at    []time.Time
}

func (m *mailbox) Send(_ context.Context, mail activities.Mail) activities.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(m.mails, mail)
	m.at = append(m.at, time.Now())
	return activities.Answer{Verdict: activities.VerdictSent, ProviderID: fmt.Sprintf("ses-%d", len(m.mails))}
}

func (m *mailbox) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mails)
}

// newActivities are a worker's activities, with the ledger of that database.
func newActivities(t *testing.T, dsn string, mailer activities.Mailer) *activities.Activities {
	t.Helper()
	acts, err := config.NewActivities(mailer, "")
	if err != nil {
		t.Fatal(err)
	}
	db, err := mysqldb.Open(mysqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, db)
	if acts.Ledger, err = ledger.New(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return acts
}

func runWorker(t *testing.T, dsn string, c client.Client, mailer activities.Mailer) {
	t.Helper()
	acts := newActivities(t, dsn, mailer)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		done <- worker.Run(ctx, worker.Config{Client: c, Activities: acts, Started: func() { close(started) }}, workflows.Builtin())
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-started
}

func migrated(t *testing.T, f func(t *testing.T, s *testdb.Schema)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrateUp(t, s)
		f(t, s)
	})
}

func migrateUp(t *testing.T, s *testdb.Schema) {
	t.Helper()
	if _, err := migrate.Up(t.Context(), s.DB); err != nil {
		t.Fatal(err)
	}
}

func enqueue(t *testing.T, s *testdb.Schema, ms ...outbox.Message) {
	t.Helper()
	if _, err := outbox.EnqueueMany(t.Context(), s.DB, ms); err != nil {
		t.Fatal(err)
	}
}

func welcome(id string) outbox.Message {
	return outbox.Message{ID: id, EventType: "welcome", Payload: map[string]string{
		"company_id": "c_1", "company_name": "Example", "email": "admin@example.com",
	}}
}

func pending(t *testing.T, s *testdb.Schema) int {
	t.Helper()
	n, err := outbox.Table{}.Pending(t.Context(), s.DB, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func failed(t *testing.T, s *testdb.Schema) (n int) {
	t.Helper()
	if err := s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM outbox_failed").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
