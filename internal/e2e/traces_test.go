package e2e

import (
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/oncepost/oncepost/internal/testotlp"
)

// The programs trace where the environment says so, name where they export to, and export all before they end. The relay with a
// worker in it starts eagerly, which changes nothing.
func TestProgramsTrace(t *testing.T) {
	const trace, producer = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for name, programs := range map[string]map[string][]string{
		"two":  {"relay running": {"relay"}, "worker running": {"worker"}},
		"both": {"relay running": {"relay", "--with-worker"}},
	} {
		t.Run(name, func(t *testing.T) {
			collector := &testotlp.Collector{}
			server := httptest.NewServer(collector)
			t.Cleanup(server.Close)
			w := one(t)
			w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_BSP_SCHEDULE_DELAY=3600000") // only the end exports
			w.must("migrate")
			var running []*process
			for says, args := range programs {
				p := w.start("oncepost", args...)
				p.await("traces are exported")
				p.await(says)
				running = append(running, p)
			}
			w.must("enqueue", "welcome", "--payload", welcome("first.user@example.com"), "--id", "m",
				"--header", "traceparent=00-"+trace+"-"+producer+"-01")
			w.mails(1)
			w.onceEach([]string{"m"})
			for _, p := range running {
				p.stop(syscall.SIGTERM)
			}
			var spans, services []string
			for _, s := range collector.Spans(trace) {
				spans, services = append(spans, s.Name), append(services, s.Service)
			}
			slices.Sort(spans)
			slices.Sort(services)
			want := []string{"RunActivity:Send", "RunWorkflow:welcome", "SES SendRawEmail", "StartActivity:Send", "StartWorkflow:welcome"}
			if !slices.Equal(spans, want) || len(slices.Compact(services)) != len(programs) {
				t.Errorf("spans %q of services %q, want %q of %d", spans, services, want, len(programs))
			}
		})
	}
}

// A collector that is away holds nothing up; without variables nothing is said of traces; variables that make no sense stop the start.
func TestTracesDoNoHarm(t *testing.T) {
	t.Parallel() // it waits, most of the time
	w := one(t)
	w.must("migrate")
	plain := w.env
	w.env = append(plain, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
	away := w.start("oncepost", "relay", "--with-worker")
	away.await("relay running")
	ids := w.enqueue(20)
	w.mails(20)
	w.onceEach(ids)
	away.await("spans are lost")
	away.stop(syscall.SIGTERM)

	w.env = plain
	off := w.start("oncepost", "relay", "--with-worker")
	if out := off.await("relay owns shards"); strings.Contains(out, "traces") {
		t.Errorf("without variables: %s", out)
	}
	off.stop(syscall.SIGTERM)

	for _, command := range []string{"relay", "worker"} {
		fails(t, append(plain, "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"), 1, []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://"}, "oncepost", command)
	}
}
