package devtemporal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const taskQueue = "q"

var state = temporal.NewSearchAttributeKeyKeyword("OncepostState")

func attributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		"OncepostState": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"OncepostSince": enumspb.INDEXED_VALUE_TYPE_DATETIME,
	}
}

// waits is a workflow that ends when it is told to.
func waits(ctx workflow.Context) (string, error) {
	var word string
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &word)
	return word, nil
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	begin := time.Now()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %v", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	begin := time.Now()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("stopped in %v", time.Since(begin).Round(time.Millisecond))
}

func dial(t *testing.T, s *Server, namespace string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort:  s.FrontendAddr(),
		Namespace: namespace,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func work(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(waits)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

func begin(t *testing.T, c client.Client, id string) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: taskQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(state.ValueSet("scheduled")),
	}, waits)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func result(t *testing.T, c client.Client, id, word string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.SignalWorkflow(ctx, id, "", "go", word); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &got); err != nil || got != word {
		t.Fatalf("%q, %v", got, err)
	}
}

// In memory: usable at once, search attributes included, in the first namespace and in one made later.
func TestInMemory(t *testing.T) {
	s := start(t, Options{SearchAttributes: attributes()})
	if s.UIURL() != "" || s.Namespace() != "default" {
		t.Errorf("%q, %q", s.UIURL(), s.Namespace())
	}
	first := dial(t, s, s.Namespace())
	begin(t, first, "a")
	work(t, first)
	result(t, first, "a", "done")

	at := time.Now()
	if err := s.CreateNamespace(t.Context(), "second", 3*time.Second); err != nil {
		t.Fatal(err)
	}
	t.Logf("second namespace after %v", time.Since(at).Round(time.Millisecond))
	second := dial(t, s, "second")
	begin(t, second, "a")
	work(t, second)
	result(t, second, "a", "done too")
	awaitDeleted(t, second, "a")
}

// awaitDeleted waits until retention has removed a closed workflow.
func awaitDeleted(t *testing.T, c client.Client, id string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := c.DescribeWorkflowExecution(t.Context(), id, ""); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is kept beyond its retention", id)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A workflow that runs goes on after a stop and a start on the same folder, on the same addresses; an attribute that
// the second start brings is added.
func TestRestartOnTheSameDir(t *testing.T) {
	// Characters that mean something in a URI.
	dir := filepath.Join(t.TempDir(), "a folder?x=1#%41")
	o := Options{Dir: dir, UIPort: FreePort, SearchAttributes: attributes()}
	s := start(t, o)
	addr, ui := s.FrontendAddr(), s.UIURL()
	id, err := s.NamespaceID(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another Temporal server runs on") {
		t.Fatalf("a second server on the folder: %v", err)
	}
	page(t, ui)
	begin(t, dial(t, s, "default"), "survivor")
	stop(t, s)
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Fatal("the frontend still listens")
	}

	o.SearchAttributes["Later"] = enumspb.INDEXED_VALUE_TYPE_INT
	again := start(t, o)
	if again.FrontendAddr() != addr || again.UIURL() != ui {
		t.Errorf("%s, %s became %s, %s", addr, ui, again.FrontendAddr(), again.UIURL())
	}
	if same, err := again.NamespaceID(t.Context(), "default"); err != nil || same != id {
		t.Errorf("namespace %s became %s, %v", id, same, err)
	}
	c := dial(t, again, "default")
	later := temporal.NewSearchAttributeKeyInt64("Later")
	if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "later", TaskQueue: taskQueue, TypedSearchAttributes: temporal.NewSearchAttributes(later.ValueSet(1)),
	}, waits); err != nil {
		t.Errorf("with the new attribute: %v", err)
	}
	work(t, c)
	result(t, c, "survivor", "alive")
}

// page reads the UI's first page and its view of the namespace through its API.
func page(t *testing.T, ui string) {
	t.Helper()
	for path, want := range map[string]string{"/": "<html", "/api/v1/namespaces/default": `"default"`} {
		r, err := http.Get(ui + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, no %s in %.300s", path, r.Status, want, body)
		}
	}
}

// The same name on a fresh folder is another namespace: what a rebuilt cluster looks like to a relay.
func TestRebuiltNamespaceHasAnotherID(t *testing.T) {
	var ids []string
	for range 2 {
		s := start(t, Options{Dir: t.TempDir(), Namespace: "ns"})
		id, err := s.NamespaceID(t.Context(), "ns")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if ids[0] == ids[1] || len(ids[0]) != 36 {
		t.Fatal(ids)
	}
}

// A taken port is an error that names it; a remembered one that is taken is replaced.
func TestTakenPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, o := range []Options{{FrontendPort: port}, {UIPort: port}} {
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is taken") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	dir := t.TempDir()
	if err := (ports{Frontend: port}).remember(dir); err != nil {
		t.Fatal(err)
	}
	p, err := choosePorts(t.Context(), Options{Dir: dir, FrontendPort: FreePort})
	if err != nil || p.Frontend == port {
		t.Errorf("%+v, %v", p, err)
	}
	// Taken between the look and the bind: the server wants to end the process, and Start tries other ports, a few times.
	for _, c := range []struct {
		taken int
		want  string
	}{{taken: 1}, {taken: 3, want: "listener"}} {
		o, err := Options{Namespace: "n", Retention: time.Hour, Logger: slog.New(slog.DiscardHandler)}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s, looks := &Server{opts: o, log: newLogger(o.Logger)}, 0
		err = s.startOn(func() (ports, error) {
			p, err := choosePorts(t.Context(), o)
			if looks++; looks <= c.taken {
				p.Frontend = port
			}
			return p, err
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("want %q in the error, got: %v", c.want, err)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}
