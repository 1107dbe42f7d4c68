package monitor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestPageShowsWhatIsKnownAndNothingElse(t *testing.T) {
	two := int64(2)
	s := &State{
		At: time.Now(), Database: Part{OK: true, Name: "app"}, Temporal: Part{Name: "mail", Error: "nobody answers"},
		Outbox:    Outbox{Pending: Count{Rows: 12345}, Oldest: 200},
		Workflows: Workflows{Parked: &two}, Shards: []Shard{{0, "a:1"}, {1, "a:1"}, {2, "a:1"}, {3, ""}, {4, "a:1"}},
		Processes: []Process{{Role: RoleRelay, Host: "<script>alert(1)</script>", SeenAgo: 99}},
		Raised:    []Raised{{Name: CondLockLost, Subject: "job/a", Detail: "twice & more", Since: time.Now().Add(-time.Minute), event: true}},
	}
	var h history
	for i := range 3 {
		s.At = s.At.Add(pointEvery)
		s.Outbox.Pending.Rows += int64(i)
		h.add(s)
	}
	var b strings.Builder
	if err := pageTemplate.Execute(&b, newPage(s, &h, Thresholds{}.WithDefaults(), "https://ui.example.com/")); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"≈12348", "3 min", "a:1</td><td>0–2, 4", "nobody</span></td><td>3", "&lt;script&gt;alert(1)", ": dead", "1 thing to look at", "a named lock was lost (job/a)",
		"twice &amp; more", `href="https://ui.example.com/namespaces/mail/workflows?query=OncepostState`, ">2</a></b>parked", ">?</a></b>stuck",
		"not known: Temporal does not say", "<svg", "an hour ago",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("the page has a script")
	}
}

// Of each half minute the worst is kept, and an hour of it.
func TestHistoryKeepsTheWorstOfAnHour(t *testing.T) {
	var h history
	at := time.Now()
	for i := range 800 {
		h.add(&State{At: at.Add(time.Duration(i) * 5 * time.Second), Database: Part{OK: true}, Outbox: Outbox{Pending: Count{Rows: int64(i % 6)}}})
	}
	h.add(&State{At: at, Outbox: Outbox{Pending: Count{Rows: 99}}}) // the database is away: nothing is known
	points := h.last()
	if n := len(points); n < 119 || n > 122 {
		t.Errorf("%d points", n)
	}
	for _, p := range points[:len(points)-1] {
		if p.pending != 5 {
			t.Fatalf("%+v", p)
		}
	}
}

// A process that hangs is not alive, and not ready; one that has not looked yet is not ready.
func TestProbesOfAProcessThatHangs(t *testing.T) {
	w := &Watch{cfg: Config{Thresholds: Thresholds{}.WithDefaults()}}
	site := Site{Watch: w, Gatherer: prometheus.NewRegistry()}.Handler()
	get := func(path string) int {
		r := httptest.NewRecorder()
		site.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return r.Code
	}
	want := func(live, ready, page int) {
		t.Helper()
		if l, r, p := get("/healthz"), get("/readyz"), get("/"); l != live || r != ready || p != page {
			t.Errorf("alive %d, ready %d, page %d, want %d, %d, %d", l, r, p, live, ready, page)
		}
	}
	want(200, 503, 503)
	now := time.Now()
	w.ended.Store(&now)
	w.state.Store(&State{Database: Part{OK: true}, Temporal: Part{OK: true}})
	want(200, 200, 200)
	w.state.Store(&State{Database: Part{Error: "away"}, Temporal: Part{OK: true}})
	want(200, 503, 200)
	long := now.Add(-2 * deadAfter)
	w.ended.Store(&long)
	want(503, 503, 200)
	if code := get("/nothing"); code != http.StatusNotFound {
		t.Errorf("%d", code)
	}
}
