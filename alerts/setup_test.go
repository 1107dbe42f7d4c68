package alerts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

const (
	from = "Example <alerts@example.com>"
	to   = "first.admin@example.com"
)

// world is an SES, a webhook and a log, and an Alerter on them.
type world struct {
	*testing.T
	ses   *sesstandin.Server
	hook  *hook
	log   *buffer
	cfg   Config
	clock time.Time
	*Alerter
}

// newWorld makes one; change may set the Config otherwise.
func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	w := &world{T: t, hook: newHook(t), log: &buffer{}, clock: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	var url string
	w.ses, url = standIn(t)
	w.cfg = Config{
		From: from, To: []string{to, "Second <second.admin@example.com>"}, Endpoint: url, Webhook: w.hook.URL + "/secret-path", Timeout: 3 * time.Second,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
	}
	if change != nil {
		change(&w.cfg)
	}
	var err error
	if w.Alerter, err = New(w.cfg); err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return w.clock }
	t.Cleanup(w.noSecrets)
	return w
}

func standIn(t *testing.T) (*sesstandin.Server, string) {
	t.Helper()
	s, err := sesstandin.New(sesstandin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		if err := s.Close(); err != nil { // first: it ends the delays that the other would wait for
			t.Error(err)
		}
		server.Close()
	})
	return s, server.URL
}

// noSecrets holds for every test: no address and no part of the webhook's URL in the log.
func (w *world) noSecrets() {
	w.Helper()
	w.clean("log", w.log.String())
}

// clean fails where text repeats an address of the tests, or the webhook's. The settings' errors show one as an example.
func (w *world) clean(what, text string) {
	w.Helper()
	text = strings.ReplaceAll(text, "mail@example.com", "")
	for _, secret := range []string{"@example", "@b", "@evil", "secret"} {
		if strings.Contains(text, secret) {
			w.Errorf("the %s holds an address or the webhook: %s", what, text)
		}
	}
}

func (w *world) fault(f sesstandin.Fault) {
	w.Helper()
	w.ses.ClearFaults()
	if _, err := w.ses.Inject(f); err != nil {
		w.Fatal(err)
	}
}

// preset injects a fault with a name.
func (w *world) preset(name string) {
	w.Helper()
	f, err := sesstandin.Preset(name)
	if err != nil {
		w.Fatal(err)
	}
	w.fault(f)
}

// must sends an alert that must leave as it should.
func (w *world) must(a Alert) {
	w.Helper()
	if err := w.Send(w.Context(), a); err != nil {
		w.Fatal(err)
	}
}

// fails sends an alert, and returns the error that it must end with.
func (w *world) fails(a Alert, says ...string) *Error {
	w.Helper()
	var err *Error
	if got := w.Send(w.Context(), a); !errors.As(got, &err) {
		w.Fatalf("no error, or another: %v", got)
	}
	w.clean("error", err.Error())
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			w.Errorf("the error does not say %q: %v", s, err)
		}
	}
	return err
}

// last is the latest mail of n.
func (w *world) last(n int) sesstandin.Mail {
	w.Helper()
	mails := w.ses.Mails()
	if len(mails) != n {
		w.Fatalf("%d mails, want %d", len(mails), n)
	}
	return mails[n-1]
}

// hook is a webhook that keeps what it gets.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	got    []map[string]any
	answer http.HandlerFunc
}

func newHook(t *testing.T) *hook {
	h := &hook{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var one map[string]any
		if r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json" && json.Unmarshal(b, &one) == nil {
			h.mu.Lock()
			h.got = append(h.got, one)
			h.mu.Unlock()
		}
		h.answer(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) posts() []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
