package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/devstack"
	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/testdb"
)

// patience bounds every wait for what should take a moment.
const patience = 45 * time.Second

func TestMain(m *testing.M) { os.Exit(shared.run(m)) }

// shared is what the tests of this binary share: tests meet nowhere else than in package state.
var shared fixture

type fixture struct {
	dir string // with the binaries

	temporalOnce sync.Once
	temporal     *devtemporal.Server
	temporalErr  error
}

func (f *fixture) run(m *testing.M) int {
	if err := f.build(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 2
	}
	code := testdb.Main(m)
	if f.temporal != nil {
		if err := f.temporal.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			code = max(code, 2)
		}
	}
	if err := os.RemoveAll(f.dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 2)
	}
	return code
}

// build makes the programs. Without debug information the largest one links in half the time.
func (f *fixture) build() (err error) {
	if f.dir, err = os.MkdirTemp("", "oncepost-e2e-"); err != nil {
		return err
	}
	const commands = "github.com/oncepost/oncepost/cmd/"
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", f.dir+string(filepath.Separator),
		commands+"oncepost", commands+"oncepost-ses", commands+"oncepost-dev")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func (f *fixture) program(name string) string { return filepath.Join(f.dir, name) }

// server is the one Temporal of this process; each test has a namespace of its own on it.
func (f *fixture) server(t *testing.T) *devtemporal.Server {
	t.Helper()
	f.temporalOnce.Do(func() {
		// Not the test's context: the server outlives the test that happens to be the first.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f.temporal, f.temporalErr = devtemporal.Start(ctx, devtemporal.Options{SearchAttributes: devstack.SearchAttributes()})
	})
	if f.temporalErr != nil {
		t.Fatal(f.temporalErr)
	}
	return f.temporal
}
