package e2e

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// world is one test's own: a database, a Temporal namespace, an SES stand-in, and the environment that names them.
type world struct {
	*testing.T
	schema   *testdb.Schema
	temporal client.Client
	ses      string
	env      []string
}

// one makes a world on the first flavour, for what does not depend on the database.
func one(t *testing.T) *world {
	t.Helper()
	return newWorld(t, testdb.NewSchema(t, testdb.Flavours()[0]))
}

func newWorld(t *testing.T, schema *testdb.Schema) *world {
	t.Helper()
	server := shared.server(t)
	if err := server.CreateNamespace(t.Context(), schema.Name, time.Hour); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(client.Options{HostPort: server.FrontendAddr(), Namespace: schema.Name, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := &world{T: t, schema: schema, temporal: c, ses: startSES(t)}
	w.env = append(baseEnv(t),
		"ONCEPOST_MYSQL_DSN="+schema.DSN,
		"ONCEPOST_MAIL_FROM=Example <mail@example.com>",
		"TEMPORAL_ADDRESS="+server.FrontendAddr(), "TEMPORAL_NAMESPACE="+schema.Name,
		"AWS_ENDPOINT_URL_SES="+w.ses, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	return w
}

// baseEnv is an environment without anything of the machine's own configuration: only where programs are.
func baseEnv(t *testing.T) []string {
	t.Helper()
	cache, err := mysqlserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), mysqlserver.CacheEnv + "=" + cache,
		"ONCEPOST_LISTEN=off",
	}
}

var inboxLine = regexp.MustCompile(`inbox +(http://\S+?)/\n`)

func startSES(t *testing.T) string {
	t.Helper()
	p := start(t, baseEnv(t), "oncepost-ses", "--listen", "127.0.0.1:0")
	return inboxLine.FindStringSubmatch(p.await("Ctrl-C stops it"))[1]
}

// start starts a program in this world.
func (w *world) start(program string, args ...string) *process {
	w.Helper()
	return start(w.T, w.env, program, args...)
}

// must runs a command that must succeed, and returns what it printed.
func (w *world) must(args ...string) string {
	w.Helper()
	code, out := run(w.T, w.env, "oncepost", args...)
	if code != 0 {
		w.Fatalf("oncepost %s: exit code %d", strings.Join(args, " "), code)
	}
	return strings.TrimSpace(out)
}

// enqueue commits messages and returns their IDs.
func (w *world) enqueue(n int) []string {
	w.Helper()
	messages := make([]outbox.Message, n)
	for i := range messages {
		messages[i] = outbox.Message{EventType: "welcome", Payload: json.RawMessage(welcome(fmt.Sprintf("first.user@c%d.example.com", i)))}
	}
	tx, err := w.schema.DB.BeginTx(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	defer tx.Rollback() // after Commit it does nothing
	ids, err := outbox.EnqueueMany(w.Context(), tx, messages)
	if err != nil {
		w.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		w.Fatal(err)
	}
	return ids
}

func welcome(email string) string {
	return fmt.Sprintf(`{"company_id": "c_1", "company_name": "Example Ltd", "email": %q}`, email)
}

// waiting counts the rows of outbox_messages.
func (w *world) waiting() int {
	w.Helper()
	n, err := outbox.Table{}.Pending(w.Context(), w.schema.DB, 10_000)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) awaitEmpty() {
	w.Helper()
	until(w.T, "outbox_messages is empty", func() bool { return w.waiting() == 0 })
}

// failed counts the rows of outbox_failed.
func (w *world) failed() (n int) {
	w.Helper()
	if err := w.schema.DB.QueryRowContext(w.Context(), "SELECT COUNT(*) FROM outbox_failed").Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// workflows counts the runs per workflow ID.
func (w *world) workflows() map[string]int {
	w.Helper()
	runs := map[string]int{}
	for token, more := []byte(nil), true; more; more = len(token) > 0 {
		page, err := w.temporal.ListWorkflow(w.Context(), &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: token})
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range page.GetExecutions() {
			runs[e.GetExecution().GetWorkflowId()]++
		}
		token = page.GetNextPageToken()
	}
	return runs
}

// onceEach fails unless there is one run for each of the IDs, and none for others, when the outbox is empty.
func (w *world) onceEach(ids []string) {
	w.Helper()
	w.awaitEmpty()
	var runs map[string]int
	until(w.T, "all workflows are listed", func() bool { runs = w.workflows(); return len(runs) >= len(ids) })
	for _, id := range ids {
		if runs[id] != 1 {
			w.Errorf("message %s: %d workflow runs", id, runs[id])
		}
	}
	if len(runs) != len(ids) {
		w.Errorf("%d workflows for %d messages", len(runs), len(ids))
	}
	if n := w.failed(); n != 0 {
		w.Errorf("%d messages in outbox_failed", n)
	}
}

// mails waits until there are at least n mails and returns all.
func (w *world) mails(n int) []sesstandin.Mail {
	w.Helper()
	return mailsAt(w.T, w.ses, n)
}

func mailsAt(t *testing.T, ses string, n int) (mails []sesstandin.Mail) {
	t.Helper()
	get(t, fmt.Sprintf("%s/_standin/mails?wait=%s&at_least=%d", ses, patience, n), &mails)
	if len(mails) < n {
		t.Fatalf("%d mails in %s, want %d", len(mails), patience, n)
	}
	return mails
}

// silent drops what Temporal's client logs.
func silent() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
