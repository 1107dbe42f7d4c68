package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// envClock is by how many seconds the clock of a skewed program is wrong.
const envClock = "ONCEPOST_TEST_CLOCK"

// skewed is the production binary on a host whose clock is wrong: Go's own package time is compiled with a clock that envClock moves.
func (f *fixture) skewed(t *testing.T) string {
	t.Helper()
	const name = "oncepost-skewed"
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	b, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const clock = "\tsec, nsec, mono := runtimeNow()\n"
	if !strings.Contains(string(b), clock) {
		t.Fatalf("%s has no %q: this version of Go reads its clock elsewhere", original, clock)
	}
	source := strings.Replace(strings.Replace(string(b), clock, clock+"\tsec += skew\n", 1), "import (\n", "import (\n\t\"syscall\"\n", 1) + `
var skew = func() (n int64) {
	text, _ := syscall.Getenv("` + envClock + `")
	sign := int64(1)
	for _, c := range text {
		if c == '-' {
			sign = -1
		} else {
			n = 10*n + int64(c-'0')
		}
	}
	return n * sign
}()
`
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: filepath.Join(dir, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"time.go": source, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(f.dir, name),
		"github.com/oncepost/oncepost/cmd/oncepost")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return name
}

var logTime = regexp.MustCompile(`time=(\S+)`)

// Hosts whose clocks are ten minutes off, to either side, see the same: a delay is kept to the second, nothing is stuck, old, or dead.
func TestHostsWithWrongClocks(t *testing.T) { // scenario 8
	t.Parallel() // it waits, most of the time
	w := newWatched(t, testdb.NewSchema(t, testdb.Flavours()[0]))
	program := shared.skewed(t)
	env := w.env
	on := func(seconds int, args ...string) *process {
		w.env = append(env, fmt.Sprintf("%s=%d", envClock, seconds))
		return w.start(program, args...)
	}
	for _, skew := range []int{600, -600} { // and a test of the test: their clocks are wrong
		relay := on(skew, "relay")
		line := logTime.FindStringSubmatch(relay.await("relay running"))
		at, err := time.Parse(time.RFC3339, line[1])
		if off := time.Until(at).Seconds(); err != nil || off < float64(skew)-60 || off > float64(skew) {
			t.Fatalf("its clock is %.0f s off, want %d: %v", off, skew, err)
		}
	}
	on(-600, "worker")
	on(600, "worker")
	on(-600, "watch")
	on(600, "watch")
	healthy := func(seconds int) bool { return on(seconds, "status").exit() == 0 }
	testdb.Eventually(t, "all is well", func() bool { return healthy(600) && healthy(-600) })

	const delay = 6 * time.Second
	due := testdb.Value[string](t, w.schema.DB, fmt.Sprintf("SELECT CAST(NOW(6) + INTERVAL %d SECOND AS CHAR)", int(delay.Seconds())))
	began := time.Now()
	testdb.Exec(t, w.schema.DB, "INSERT INTO outbox_messages (message_id, event_type, payload, deliver_at) VALUES ('later', 'welcome', ?, ?)", welcome("later@c1.example.com"), due)
	testdb.Exec(t, w.schema.DB, "INSERT INTO outbox_messages (message_id, event_type, payload) VALUES ('now', 'welcome', ?)", welcome("now@c1.example.com"))
	for _, m := range w.mails(2) {
		took := m.ReceivedAt.Sub(began)
		if m.MessageID == "later" && took < delay || m.MessageID == "now" && took > delay {
			t.Errorf("%s came after %s", m.MessageID, took)
		}
	}
	on(0, "sending", "stop", "--by", "a", "--why", "b").exit()
	id := w.enqueueOne("stuck")
	w.heard("[alert] oncepost: sending has stopped (person)")
	on(0, "sending", "resume").exit()
	for _, subject := range w.heard("[alert] oncepost: over: sending has stopped (person)") {
		if !strings.Contains(subject, "sending has stopped") {
			t.Errorf("people heard %q", subject)
		}
	}
	w.mails(3)
	w.onceEach([]string{"now", "later", id})
	if !healthy(600) || !healthy(-600) {
		t.Error("all is not well")
	}
}

// enqueueOne commits one welcome message.
func (w *world) enqueueOne(id string) string {
	w.Helper()
	if _, err := outbox.Enqueue(w.Context(), w.schema.DB, outbox.Message{ID: id, EventType: "welcome", Payload: json.RawMessage(welcome(id + "@c1.example.com"))}); err != nil {
		w.Fatal(err)
	}
	return id
}
