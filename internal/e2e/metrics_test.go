package e2e

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
)

// shipped are the files that use metrics.
var shipped = []string{"../../deploy/prometheus/alerts.yml", "../../deploy/grafana/oncepost.json"}

var metricName = regexp.MustCompile(`\b(?:oncepost|temporal)_[a-z_]+[a-z]`)

// scrapes are the values that each metric was seen with, all labels together.
type scrapes map[string]map[string]bool

func (s scrapes) add(t *testing.T, page string) {
	t.Helper()
	_, body := fetch(t, page+"metrics")
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		cut := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || cut < 0 {
			continue
		}
		series, value := line[:cut], line[cut+1:]
		name, _, _ := strings.Cut(series, "{")
		if s[name] == nil {
			s[name] = map[string]bool{}
		}
		s[name][series+" "+value] = true
		if strings.Contains(body, "@example.com") || strings.Contains(body, "c0.example.com") {
			t.Fatal("the metrics hold an address")
		}
	}
}

// moved reports whether some series of a metric was seen with two values.
func (s scrapes) moved(name string) bool {
	series := map[string]bool{}
	for seen := range s[name] {
		key := seen[:strings.LastIndexByte(seen, ' ')]
		if series[key] {
			return true
		}
		series[key] = true
	}
	return false
}

// Every metric that the dashboard and the alert rules use exists, and moves when what it counts does.
func TestShippedMetricsExistAndMove(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	watch := w.start("oncepost", "watch").page()
	relay := w.start("oncepost", "relay")
	seen := scrapes{}
	seen.add(t, relay.page())
	look := func() { seen.add(t, watch) }
	sees := func(what string, holds func() bool) {
		t.Helper()
		testdb.Eventually(t, what, func() bool { // a connection that went silent takes its time
			time.Sleep(10 * time.Millisecond)
			look()
			return holds()
		})
	}
	value := func(series string) func() bool {
		return func() bool { _, body := fetch(t, watch+"metrics"); return strings.Contains(body, "\n"+series+"\n") }
	}
	testdb.Exec(t, w.schema.DB, `INSERT INTO outbox_failed (message_id, event_type, payload, priority, reason, detail) VALUES ('a', 'welcome', '{}', 3, 'never_starts', '')`)
	sees("no worker", value(`oncepost_condition_active{condition="no_worker"} 1`))
	ids := w.enqueue(5)
	sees("tasks wait", value(`oncepost_task_queue_backlog_tasks{kind="workflow",task_queue="oncepost"} 5`))
	first := w.start("oncepost", "worker")
	worker := first.page()
	seen.add(t, worker)
	w.must("sending", "stop", "--by", "a", "--why", "b")
	sees("sending is stopped", value("oncepost_sending_stopped 1"))
	w.must("sending", "resume")
	w.mails(len(ids))
	sees("all workflows have closed", value(`oncepost_workflows{state="running"} 0`))
	seen.add(t, worker)
	seen.add(t, relay.page())
	first.stop(syscall.SIGTERM)
	worker = w.start("oncepost", "worker").page() // it asks for the quota anew
	sees("mails count against the quota", value("oncepost_ses_quota_used_messages 5"))
	testdb.Exec(t, w.schema.DB, "DELETE FROM outbox_failed")
	w.mails(len(ids) + len(w.enqueue(1))) // the namespace has just been verified: starts are tried
	w.flows.Set(testnet.Silent)
	w.enqueue(5)
	until(t, "starts hang", func() bool { seen.add(t, relay.page()); return seen.moved("oncepost_relay_starts_in_flight") })
	sees("Temporal is away", value("oncepost_temporal_up 0"))
	sees("messages wait", value("oncepost_outbox_pending_messages 5"))
	sees("people hear", value(`oncepost_condition_active{condition="temporal_away"} 1`))
	seen.add(t, relay.page())
	seen.add(t, worker)
	w.flows.Set(testnet.Pass)
	sees("messages go on", value("oncepost_outbox_pending_messages 0"))
	w.database.Set(testnet.Refuse)
	sees("the database is away", value("oncepost_database_up 0"))
	w.database.Set(testnet.Pass)
	sees("the database is back", value("oncepost_database_up 1"))
	w.start("oncepost", "relay") // shares the shards
	until(t, "the shards are shared", func() bool { seen.add(t, relay.page()); return seen.moved("oncepost_relay_owned_shards") })
	relay.kill()
	sees("one relay is dead", value(`oncepost_processes_alive{role="relay"} 1`))
	seen.add(t, worker)

	for _, file := range shipped {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(b), -1)
		if len(names) < 8 {
			t.Errorf("%s uses %q only", file, names)
		}
		for _, name := range names {
			switch {
			case len(seen[name]) == 0:
				t.Errorf("%s uses %s, which nobody shows", file, name)
			case !seen.moved(name) && !constant[name]:
				t.Errorf("%s never moved: %v", name, seen[name])
			}
		}
	}
}

// constant metrics are those that tell what is set; the limit moves under a load that a test does not make (package starter tests it).
var constant = map[string]bool{
	"oncepost_build_info": true, "oncepost_relay_start_limit": true, "oncepost_ses_quota_messages": true, "oncepost_ses_quota_rate_messages_per_second": true,
}
