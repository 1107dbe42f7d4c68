package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// FlavoursEnv is the environment variable that chooses the flavours.
const FlavoursEnv = "ONCEPOST_TEST_DB"

// startTimeout bounds the first start of a server, which may have to be fetched.
const startTimeout = 10 * time.Minute

// servers are the test binary's own. They are package state because a binary's tests meet nowhere else; Main opens it
// and closes it, and nothing outside tests imports this package.
var servers shared

type shared struct {
	mu    sync.Mutex
	dir   string // "" unless Main is running
	slots map[mysqlserver.Flavour]*slot
}

// slot is a flavour's one server. A start that failed is not tried again: each test then says why at once.
type slot struct {
	once   sync.Once
	server *mysqlserver.Server
	err    error
}

// Main runs the tests and then ends the servers that they started. It returns the process's exit code.
func Main(m *testing.M) int {
	if err := servers.open(); err != nil {
		fmt.Fprintln(os.Stderr, "testdb:", err)
		return 2
	}
	code := m.Run()
	if err := servers.close(); err != nil {
		fmt.Fprintln(os.Stderr, "testdb:", err)
		return max(code, 2)
	}
	return code
}

func (s *shared) open() error {
	if _, err := flavours(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp("", "oncepost-testdb-")
	if err != nil {
		return err
	}
	s.dir, s.slots = dir, map[mysqlserver.Flavour]*slot{}
	return nil
}

// close kills the servers: their data is removed anyway. A server that had ended by itself is an error.
func (s *shared) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, slot := range s.slots {
		if slot.server != nil {
			errs = append(errs, slot.server.Err(), slot.server.Kill())
		}
	}
	errs = append(errs, os.RemoveAll(s.dir))
	s.dir, s.slots = "", nil
	return errors.Join(errs...)
}

func (s *shared) server(f mysqlserver.Flavour) (*mysqlserver.Server, error) {
	s.mu.Lock()
	dir := s.dir
	if dir == "" {
		s.mu.Unlock()
		return nil, errors.New("testdb.Main is not running: add func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }")
	}
	sl := s.slots[f]
	if sl == nil {
		sl = &slot{}
		s.slots[f] = sl
	}
	s.mu.Unlock()
	sl.once.Do(func() {
		// Not the test's context: the server outlives the test that happens to be the first.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		sl.server, sl.err = startServer(ctx, f, filepath.Join(dir, string(f)))
	})
	return sl.server, sl.err
}

func startServer(ctx context.Context, f mysqlserver.Flavour, dir string, flags ...string) (*mysqlserver.Server, error) {
	root, err := findRoot(ctx, f)
	if err != nil {
		return nil, err
	}
	return mysqlserver.Start(ctx, mysqlserver.Options{Root: root, Dir: dir, Flags: flags})
}

// findRoot prefers the fetched server, whose version is the same for all who test, to whatever a machine has.
func findRoot(ctx context.Context, f mysqlserver.Flavour) (mysqlserver.Root, error) {
	root, err := mysqlserver.Fetch(ctx, f, "", os.Stderr)
	if errors.Is(err, mysqlserver.ErrNotFetchable) {
		return mysqlserver.Locate(ctx, f, "", os.Stderr)
	}
	return root, err
}
