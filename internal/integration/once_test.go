package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/worker"
	"github.com/oncepost/oncepost/workflows"
)

// cashier is a user's payment handler. Each charge is a line in a file; the first of a message kills its own process, between
// the effect and its outcome.
type cashier struct{ dir string }

func (c *cashier) Charge(ctx context.Context, id string, policy activities.Policy) (string, error) {
	return activities.Once(ctx, "charge", policy, func(context.Context) (string, error) {
		f, err := os.OpenFile(filepath.Join(c.dir, id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := f.WriteString("charged\n"); err != nil {
			return "", activities.Unsure(err)
		}
		if n, err := charges(c.dir, id); err != nil || n == 1 {
			return "", activities.Unsure(fmt.Errorf("kill: %w, %w", err, syscall.Kill(os.Getpid(), syscall.SIGKILL)))
		}
		return "receipt of " + id, nil
	})
}

func charges(dir, id string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, id))
	return strings.Count(string(b), "\n"), err
}

func chargeHold(ctx workflow.Context, _ map[string]any, msg schemas.Envelope) (string, error) {
	return charge(ctx, msg, activities.Hold)
}

func chargeResend(ctx workflow.Context, _ map[string]any, msg schemas.Envelope) (string, error) {
	return charge(ctx, msg, activities.Resend)
}

func charge(ctx workflow.Context, msg schemas.Envelope, policy activities.Policy) (receipt string, err error) {
	p, err := workflows.NewParking(ctx, msg)
	if err != nil {
		return "", err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: activities.LeastTime})
	var c *cashier
	err = p.Guard(ctx, "charge", func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(ctx, c.Charge, msg.MessageID, policy).Get(ctx, &receipt)
	})
	return receipt, err
}

// envCashier holds the arguments of a process that is a worker with a cashier: dir, DSN, frontend, namespace.
const envCashier = "ONCEPOST_TEST_CASHIER"

// runCashier is such a process. It ends by being killed.
func runCashier(args []string) error {
	dir, dsn, frontend, namespace := args[0], args[1], args[2], args[3]
	c, err := client.Dial(client.Options{HostPort: frontend, Namespace: namespace, Logger: silent()})
	if err != nil {
		return err
	}
	db, err := mysqldb.Open(mysqldb.Config{DSN: dsn})
	if err != nil {
		return err
	}
	acts, err := config.NewActivities(&mailbox{}, "")
	if err != nil {
		return err
	}
	if acts.Ledger, err = ledger.New(context.Background(), db); err != nil {
		return err
	}
	types := workflows.Registry{}.With(workflows.Type{Name: "charge_hold", Workflow: chargeHold}, workflows.Type{Name: "charge_resend", Workflow: chargeResend})
	return worker.Run(context.Background(), worker.Config{Client: c, Activities: acts, Own: []any{&cashier{dir}}}, types)
}

// A worker dies between a user's own effect and its outcome: the held one is parked until a person says what is true, and the other
// one is done once more.
func TestOnceAndSIGKILL(t *testing.T) {
	t.Parallel()
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		ns, c := newNamespace(t, temporal, s, "cashier", 24*time.Hour)
		runRelay(t, s.DSN, c, ns, starter.Config{})
		onceAndSIGKILL(&world{t: t, s: s, c: c, namespace: ns}, temporal.FrontendAddr())
	})
}

func onceAndSIGKILL(w *world, frontend string) {
	dir := w.t.TempDir()
	args := []string{dir, w.s.DSN, frontend, w.namespace}
	for _, id := range []string{"hold", "resend"} { // one after the other: the death in one must not come between the other's claim and effect
		enqueue(w.t, w.s, outbox.Message{ID: id, EventType: "charge_" + id, Payload: map[string]any{}})
		for w.charged(dir, id) == 0 {
			<-startCashier(w.t, args)
		}
	}
	startCashier(w.t, args)
	got := ""
	if err := w.c.GetWorkflow(w.t.Context(), "resend", "").Get(w.t.Context(), &got); err != nil || got != "receipt of resend" {
		w.t.Errorf("resend: %q, %v", got, err)
	}
	if details := w.awaitParked("hold"); !strings.Contains(details, "charge: the worker ended") {
		w.t.Errorf("details:\n%s", details)
	}
	w.resolve("hold", workflows.DecisionSent)
	if err := w.c.GetWorkflow(w.t.Context(), "hold", "").Get(w.t.Context(), &got); err != nil || got != "" {
		w.t.Errorf("hold: %q, %v", got, err)
	}
	if hold, resend := w.charged(dir, "hold"), w.charged(dir, "resend"); hold != 1 || resend != 2 {
		w.t.Errorf("charged %d times and %d times, want 1 and 2", hold, resend)
	}
}

// charged is how often a message was charged.
func (w *world) charged(dir, id string) int {
	w.t.Helper()
	n, err := charges(dir, id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return n
}

// startCashier starts a process of runCashier.
func startCashier(t *testing.T, args []string) (ended <-chan struct{}) {
	t.Helper()
	self := exec.Command(os.Args[0])
	self.Env = append(os.Environ(), envCashier+"="+strings.Join(args, "\n"))
	self.Stderr = os.Stderr
	if err := self.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := self.Wait(); err == nil { // by a signal, as a rule its own
			t.Error("the worker ended by itself")
		}
	}()
	t.Cleanup(func() {
		if err := self.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-done
	})
	return done
}
