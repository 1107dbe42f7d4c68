package migrate

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	osexec "os/exec"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/locks"
)

// process is a copy of the test binary that migrates.
type process struct {
	*osexec.Cmd
	stderr bytes.Buffer
	ended  chan error // gets what Wait returns
}

func startProcess(t *testing.T, dsn string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{ended: make(chan error, 1)}
	p.Cmd = osexec.CommandContext(context.WithoutCancel(t.Context()), self)
	p.Env = append(os.Environ(), childEnv+"="+dsn)
	p.Stderr = &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
	return p
}

// Ten processes migrate an empty database at once, and the first is killed in the middle of it. (scenario 12)
func TestTenProcessesMigrateAndTheFirstIsKilled(t *testing.T) {
	for _, at := range []struct {
		name    string
		reached func(t *testing.T, s *testdb.Schema) bool
	}{
		{"once it holds the lock", locked},
		{"once the first table is there", func(t *testing.T, s *testdb.Schema) bool {
			return hasTable(t, s.DB, "outbox_messages")
		}},
		{"once the first version is recorded", func(t *testing.T, s *testdb.Schema) bool {
			have, err := current(t.Context(), s.DB)
			return err == nil && have >= 1
		}},
	} {
		t.Run(at.name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
				first := startProcess(t, s.DSN)
				testdb.Eventually(t, "the first process's lock", func() bool { return locked(t, s) || ended(first) })
				testdb.Eventually(t, at.name, func() bool { return at.reached(t, s) || ended(first) })
				// An error says that it has ended by itself meanwhile: then the others have nothing to do.
				if err := first.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Fatal(err)
				}
				have, err := current(t.Context(), s.DB)
				t.Logf("killed with version %d, %v", have, err)
				var others []*process
				for range 9 {
					others = append(others, startProcess(t, s.DSN))
				}
				for _, p := range others {
					if err := <-p.ended; err != nil {
						t.Errorf("%v: %s", err, &p.stderr)
					}
				}
				<-first.ended
				complete(t, s)
			})
		})
	}
}

// All ten that start on an empty database succeed when none is disturbed.
func TestTenProcessesMigrateAtOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		var all []*process
		for range 10 {
			all = append(all, startProcess(t, s.DSN))
		}
		for _, p := range all {
			if err := <-p.ended; err != nil {
				t.Errorf("%v: %s", err, &p.stderr)
			}
		}
		// Each migration was applied by one of them.
		if n, want := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM "+VersionTable), len(files())+1; n != want {
			t.Errorf("%d records of versions, want %d", n, want)
		}
		complete(t, s)
	})
}

func ended(p *process) bool {
	select {
	case err := <-p.ended:
		p.ended <- err
		return true
	default:
		return false
	}
}

func locked(t *testing.T, s *testdb.Schema) bool {
	t.Helper()
	return testdb.Value[bool](t, s.DB, "SELECT IS_USED_LOCK(?) IS NOT NULL", locks.Name(s.Name, "migrate"))
}

func hasTable(t *testing.T, db *sql.DB, name string) bool {
	t.Helper()
	return testdb.Value[bool](t, db, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", name)
}
