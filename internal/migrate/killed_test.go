package migrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
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

// Ten processes migrate an empty database at once. The first, which all others wait for, is killed in the middle of a
// migration: it has sent a statement, and has no answer. (scenario 12)
func TestTenProcessesMigrateAndTheFirstIsKilled(t *testing.T) {
	for _, c := range []struct {
		name      string
		statement string
		at        place
		version   int64 // recorded when it is killed
	}{
		{"the server works on its statement", "outbox_failed (", onServer, 2},
		{"a table is made and not recorded", "outbox_messages (", afterServer, 0},
		{"its transaction is open", "INSERT IGNORE INTO outbox_messages", afterServer, 1},
		{"before its last statement", "sending_stops (", beforeServer, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
				blocker := testdb.Conn(t, s.DB)
				h := newHold(c.statement, c.at)
				var all []*process
				for i := range 10 {
					all = append(all, startProcess(t, h.through(t, s, i)))
				}
				first := all[h.await(t)]
				testdb.Eventually(t, "a session of each, and two of the first", func() bool { return sessions(t, s) >= 11 })
				if c.at == onServer {
					testdb.Exec(t, blocker, "FLUSH TABLES WITH READ LOCK") // nothing can be created
					close(h.pass)
					testdb.Eventually(t, "its statement waits in the server", func() bool { return creating(t, s) })
				}
				if have, err := current(t.Context(), s.DB); err != nil || have != c.version {
					t.Errorf("version %d is recorded, want %d: %v", have, c.version, err)
				}
				kill(t, first)
				testdb.Exec(t, blocker, "UNLOCK TABLES")
				for _, p := range all {
					if err := <-p.ended; p != first && err != nil {
						t.Errorf("%v: %s", err, &p.stderr)
					}
				}
				complete(t, s)
			})
		})
	}
}

// kill ends a process that must be running, and sees to it that it died of that.
func kill(t *testing.T, p *process) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := <-p.ended
	p.ended <- err
	var exit *osexec.ExitError
	if !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the process was not killed, but ended by itself: %v", err)
	}
}

// sessions counts those of the processes: the pool of the test sends one.
func sessions(t *testing.T, s *testdb.Schema) int {
	t.Helper()
	return testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ?", s.Name) - s.DB.Stats().OpenConnections
}

// creating tells whether a statement that makes a table waits.
func creating(t *testing.T, s *testdb.Schema) bool {
	t.Helper()
	return testdb.Value[bool](t, s.DB, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND command = 'Query' AND info LIKE 'CREATE TABLE%'", s.Name)
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
