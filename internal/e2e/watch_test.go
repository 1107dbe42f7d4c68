package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
	"github.com/oncepost/oncepost/monitor"
)

// watched is a world whose relay and worker watch each other, over networks that can fail. People hear by a stand-in of its own.
type watched struct {
	*world
	people          string
	database, flows *testnet.Proxy
}

// hasty are small thresholds, but so large that a busy machine raises no alarm.
var hasty = []string{
	"ONCEPOST_WATCH_NO_RELAY=5s", "ONCEPOST_WATCH_NO_WORKER=5s", "ONCEPOST_WATCH_STALLED=5s", "ONCEPOST_WATCH_DATABASE_AWAY=5s",
	"ONCEPOST_WATCH_TEMPORAL_AWAY=5s", "ONCEPOST_WATCH_OLDEST_ROW=10s", "ONCEPOST_WATCH_STUCK=10s", "ONCEPOST_WATCH_CLEAR=1s",
}

func newWatched(t *testing.T, s *testdb.Schema) *watched {
	t.Helper()
	w := &watched{world: newWorld(t, s)}
	w.must("migrate")
	env, ses := alertEnv(t)
	w.people = ses
	w.flows = testnet.New(t, func() string { return shared.server(t).FrontendAddr() })
	cfg, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	address := cfg.Addr
	w.database = testnet.New(t, func() string { return address })
	cfg.Addr = w.database.Addr()
	w.env = slices.Concat(w.env, env[len(env)-3:], hasty, []string{
		"ONCEPOST_MYSQL_DSN=" + cfg.FormatDSN(), "TEMPORAL_ADDRESS=" + w.flows.Addr(), "ONCEPOST_LISTEN=127.0.0.1:0",
	})
	return w
}

// heard waits until people have got an alert with this subject, and returns all subjects. The stand-in shows the latest first.
func (w *watched) heard(subject string) (all []string) {
	w.Helper()
	testdb.Eventually(w.T, "an alert: "+subject, func() bool { // Temporal reports a problem after five failures, a minute in all
		all = nil
		for _, m := range mailsAt(w.T, w.people, 0) {
			all = append(all, m.Subject)
		}
		return slices.Contains(all, subject)
	})
	return all
}

var pageLine = regexp.MustCompile(`msg="status page and metrics" url=(\S+)`)

// page is where a process serves its status page.
func (p *process) page() string {
	p.t.Helper()
	return pageLine.FindStringSubmatch(p.await(`msg="status page and metrics"`))[1]
}

// fetch asks for a page.
func fetch(t *testing.T, url string) (code int, body string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// The death of any part is told by one that survives, and that it lives again; of nothing else anybody hears. (The silence of a
// server is a network that passes nothing on.)
func TestDeathsAreTold(t *testing.T) {
	t.Parallel() // it waits, most of the time
	for name, c := range map[string]struct {
		title  string
		deaths int // how often it is told: where the database is away each by itself
		dies   func(w *watched, relay, worker *process)
		lives  func(w *watched, relay, worker *process)
	}{
		"relay": {"no relay is alive", 1, func(_ *watched, relay, _ *process) { relay.kill() }, func(w *watched, _, _ *process) { w.start("oncepost", "relay") }},
		"frozen worker": {
			"no worker is alive", 1, func(_ *watched, _, worker *process) { worker.signal(syscall.SIGSTOP) },
			func(_ *watched, _, worker *process) { worker.signal(syscall.SIGCONT) },
		},
		"Temporal": {
			"Temporal cannot be reached", 1, func(w *watched, _, _ *process) { w.flows.Set(testnet.Silent) },
			func(w *watched, _, _ *process) { w.flows.Set(testnet.Pass) },
		},
		"database": {
			"the database cannot be used", 2, func(w *watched, _, _ *process) { w.database.Set(testnet.Silent) },
			func(w *watched, _, _ *process) { w.database.Set(testnet.Pass) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
			relay, worker := w.start("oncepost", "relay"), w.start("oncepost", "worker")
			testdb.Eventually(t, "all is well", func() bool { code, _ := run(t, w.env, "oncepost", "status"); return code == 0 })
			c.dies(w, relay, worker)
			w.heard("[alert] oncepost: " + c.title)
			c.lives(w, relay, worker)
			over := "[alert] oncepost: over: " + c.title
			for _, subject := range w.heard(over) {
				if subject != over && subject != "[alert] oncepost: "+c.title {
					t.Errorf("people heard %q", subject)
				}
			}
			begun := 0
			for _, subject := range w.heard(over) {
				if subject != over {
					begun++
				}
			}
			if begun < 1 || begun > c.deaths {
				t.Errorf("told %d times, want 1 to %d", begun, c.deaths)
			}
		})
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// An event type that no worker knows shows itself: its workflow tasks fail.
func TestAnUnknownEventTypeIsTold(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	w.start("oncepost", "relay", "--with-worker")
	w.must("enqueue", "nobody_knows_it", "--payload", "{}", "--id", "unknown")
	w.heard("[alert] oncepost: workers fail at the code of workflows")
	if err := w.temporal.TerminateWorkflow(t.Context(), "unknown", "", "test"); err != nil {
		t.Fatal(err)
	}
	w.heard("[alert] oncepost: over: workers fail at the code of workflows")
}

// The status as a table, as JSON and by its exit code; and what probes of a relay that works and of one that cannot answer.
func TestStatusAndProbes(t *testing.T) {
	w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	code, out := run(t, w.env, "oncepost", "status")
	if code != 3 || !strings.Contains(out, "no_relay: no relay is alive") || !strings.Contains(out, "no_worker") {
		t.Errorf("exit code %d: %s", code, out)
	}
	both := w.start("oncepost", "relay", "--with-worker")
	page := both.page()
	testdb.Eventually(t, "ready", func() bool { code, _ := fetch(t, page+"readyz"); return code == http.StatusOK })
	both.await(`msg="the pipeline at the start" database="` + w.schema.Name + `, answers"`)
	both.await(" pending=0 failed=0 relays=1 workers=1 watches=0 running=0 parked=0 stuck=0 stops=0 tells_people=true")
	w.mails(len(w.enqueue(3)))
	testdb.Eventually(t, "all is well", func() bool { code, _ = run(t, w.env, "oncepost", "status"); return code == 0 })
	var s monitor.State
	testdb.Eventually(t, "three mails are counted", func() bool {
		_, out = run(t, w.env, "oncepost", "status", "--json")
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return s.Sends["sent"] == 3
	})
	if !s.Outbox.Pending.Exact || s.Outbox.Pending.Rows != 0 || s.Shards[31].Owner == "" || len(s.Processes) != 2 || s.Quota == nil || *s.Workflows.Running != 0 {
		t.Errorf("%s", out)
	}
	var served monitor.State
	if _, body := fetch(t, page+"status.json"); json.Unmarshal([]byte(body), &served) != nil || len(served.Processes) != 2 {
		t.Errorf("%s", body)
	}
	w.flows.Set(testnet.Refuse)
	testdb.Eventually(t, "not ready", func() bool {
		code, body := fetch(t, page+"readyz")
		return code == 503 && strings.Contains(body, "Temporal")
	})
	if code, body := fetch(t, page+"healthz"); code != http.StatusOK {
		t.Errorf("healthz answers %d: %s", code, body)
	}
	again := w.start("oncepost", "status", "--watch", "100ms")
	until(t, "it is printed again and again", func() bool { return strings.Count(again.out.String(), "temporal_away") > 1 })
	again.stop(syscall.SIGINT)
	fails(t, append(w.env, "ONCEPOST_LISTEN="+strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/")), 1, []string{"ONCEPOST_LISTEN", "address already in use"}, "oncepost", "watch")
	fails(t, w.env, 2, []string{"at least 3s"}, "oncepost", "watch", "--watch-stuck", "1s")
}

// The page that a person reads, in a real browser.
func TestStatusPage(t *testing.T) {
	w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	w.env = append(w.env, "ONCEPOST_TEMPORAL_UI=http://127.0.0.1:1/ui")
	both := w.start("oncepost", "relay", "--with-worker")
	page := both.page()
	// The page loads itself anew every 5 seconds: what it is to show is waited for elsewhere.
	shows := func(conditions int) {
		t.Helper()
		testdb.Eventually(t, "conditions", func() bool {
			var s monitor.State
			_, body := fetch(t, page+"status.json")
			return json.Unmarshal([]byte(body), &s) == nil && len(s.All()) == conditions && s.Shards[31].Owner != "" && len(s.Queues) > 0
		})
	}
	b := newBrowser(t)
	shows(0)
	b.open(page)
	b.shows("all is well", "pending messages", "Last hour", "0–31", "oncepost-send", "worker")
	if link := b.link(".numbers a", "0"); !strings.HasPrefix(link, "http://127.0.0.1:1/ui/namespaces/"+w.schema.Name+"/workflows?query=") {
		t.Errorf("the link leads to %s", link)
	}
	w.must("sending", "stop", "--by", "first.admin", "--why", "a <b>test</b>")
	ids := w.enqueue(2)
	shows(1)
	b.open(page)
	b.shows("1 thing to look at", "sending has stopped (person)", "by first.admin: a <b>test</b>", "oncepost sending status")
	b.picture("status.png")
	w.must("sending", "resume")
	w.mails(len(ids))
	shows(0)
}

// A process that starts while the database is away is the only one there may be to tell.
func TestAStartWithoutADatabaseIsTold(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	w.database.Set(testnet.Refuse)
	w.start("oncepost", "watch")
	const title = "the database cannot be used"
	w.heard("[alert] oncepost: " + title)
	w.database.Set(testnet.Pass)
	if all := w.heard("[alert] oncepost: over: " + title); len(all) != 2 {
		t.Errorf("people heard %q", all)
	}
}
