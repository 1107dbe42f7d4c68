package mysqlserver

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func fetched(t *testing.T, f Flavour) Root {
	t.Helper()
	r, err := Fetch(t.Context(), f, "", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// each runs the test once per flavour.
func each(t *testing.T, test func(t *testing.T, r Root)) {
	for _, f := range []Flavour{MySQL, MariaDB} {
		t.Run(string(f), func(t *testing.T) { test(t, fetched(t, f)) })
	}
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	begin := time.Now()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s up after %v", o.Root, time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(t *testing.T, s *Server, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func waitGone(t *testing.T, s *Server) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the server is still there")
	}
}

// A committed row is there after an orderly stop and after a kill, on the same address.
func TestRestartKeepsDataAndAddress(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		s := start(t, Options{Root: r, Dir: t.TempDir()})
		db := open(t, s, "")
		mustExec(t, db, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
		begin := time.Now()
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("stopped in %v", time.Since(begin).Round(time.Millisecond))
		if err := s.Stop(t.Context()); err != nil || s.Err() != nil {
			t.Fatalf("second stop: %v, %v", err, s.Err())
		}
		again := start(t, s.Options())
		if again.Addr() != s.Addr() {
			t.Fatalf("address %s became %s", s.Addr(), again.Addr())
		}
		mustExec(t, open(t, again, "d"), "INSERT INTO t VALUES (2)")
		if err := again.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := again.Stop(t.Context()); err != nil || again.Wait() != nil {
			t.Fatalf("stop after kill: %v, %v", err, again.Err())
		}
		third := start(t, again.Options())
		if n := count(t, open(t, third, "d"), "SELECT COUNT(*) FROM t"); n != 2 {
			t.Fatalf("%d rows of 2 are left", n)
		}
	})
}

// Several servers of both flavours run at once and are each their own.
func TestSeveralAtOnce(t *testing.T) {
	roots := []Root{fetched(t, MySQL), fetched(t, MySQL), fetched(t, MariaDB), fetched(t, MariaDB)}
	ids := make([]string, len(roots))
	var all sync.WaitGroup
	for i, r := range roots {
		dir := t.TempDir()
		all.Go(func() {
			s := start(t, Options{Root: r, Dir: dir})
			query := "SELECT @@version"
			if r.Flavour == MySQL {
				query = "SELECT @@server_uuid"
			}
			if err := open(t, s, "").QueryRow(query).Scan(&ids[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if ids[0] == ids[1] {
		t.Errorf("two MySQL servers share the identity %s", ids[0])
	}
	if !strings.Contains(ids[2], "MariaDB") || !strings.Contains(ids[3], roots[2].Version) {
		t.Errorf("versions %q, want MariaDB %s", ids[2:], roots[2].Version)
	}
}

// An exit that nobody asked for closes Done, and the error carries the log.
func TestUnexpectedExit(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		s := start(t, Options{Root: r, Dir: t.TempDir()})
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		waitGone(t, s)
		err := s.Wait()
		if err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "hutdown") {
			t.Fatalf("want the exit and the log's end, got: %v", err)
		}
		if stopErr := s.Stop(t.Context()); stopErr == nil {
			t.Error("Stop hides that the server had gone")
		}
	})
}

func TestStartErrorsCarryTheLog(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		_, err := Start(t.Context(), Options{Root: r, Dir: t.TempDir(), Flags: []string{"--no-such-option-at-all"}})
		if err == nil || !strings.Contains(err.Error(), "no-such-option-at-all") {
			t.Fatalf("want the server's own words, got: %v", err)
		}
	})
}

// A port that another server of ours has is not taken for a start that succeeded.
func TestStartOnTakenPort(t *testing.T) {
	r := fetched(t, MariaDB)
	s := start(t, Options{Root: r, Dir: t.TempDir()})
	o := s.Options()
	o.Dir = t.TempDir()
	second, err := Start(t.Context(), o)
	if err == nil {
		t.Fatalf("a second server started on %s, pid %d", second.Addr(), second.PID())
	}
	if n := count(t, open(t, s, ""), "SELECT 1"); n != 1 {
		t.Fatal("the first server is gone")
	}
}

// The folder's lock belongs to the server itself, not to the process that started it.
func TestDirIsLockedWhileTheServerLives(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		s := start(t, Options{Root: r, Dir: t.TempDir()})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		o := s.Options()
		o.Port = 0
		if _, err := Start(ctx, o); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lock") {
			t.Fatalf("want the folder to be locked, got: %v", err)
		}
	})
}

// A server that does not react to SIGTERM is killed when the context ends, and the error says so.
func TestStopKillsAfterItsBound(t *testing.T) {
	s := start(t, Options{Root: fetched(t, MariaDB), Dir: t.TempDir()})
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("want the bound in the error, got: %v", err)
	}
	waitGone(t, s)
}

func TestDurableFlags(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		for _, durable := range []bool{false, true} {
			s := start(t, Options{Root: r, Dir: t.TempDir(), Durable: durable, Flags: []string{"--max-connections=77"}})
			db := open(t, s, "")
			commit, binlog, conns := 2, 0, 77
			if durable {
				commit = 1
			}
			if durable && r.Flavour == MySQL {
				binlog = 1
			}
			if n := count(t, db, "SELECT @@innodb_flush_log_at_trx_commit"); n != commit {
				t.Errorf("durable=%v: flush_log_at_trx_commit %d", durable, n)
			}
			if n := count(t, db, "SELECT @@log_bin"); n != binlog {
				t.Errorf("durable=%v: log_bin %d", durable, n)
			}
			if n := count(t, db, "SELECT @@max_connections"); n != conns {
				t.Errorf("the caller's flag lost: max_connections %d", n)
			}
		}
	})
}

// A first use by several processes at once makes the template once and leaves nothing behind.
func TestTemplateIsMadeOnce(t *testing.T) {
	each(t, func(t *testing.T, r Root) {
		cache := t.TempDir()
		r.templateAt = filepath.Join(cache, "template")
		begin := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := ensureTemplate(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		t.Logf("template made in %v", time.Since(begin).Round(time.Millisecond))
		if _, err := os.Stat(filepath.Join(r.templateAt, "auto.cnf")); err == nil {
			t.Error("the template has an identity that its copies would share")
		}
		begin = time.Now()
		if err := copyTree(r.templateAt, filepath.Join(t.TempDir(), "data")); err != nil {
			t.Fatal(err)
		}
		t.Logf("template copied in %v", time.Since(begin).Round(time.Millisecond))
		left, err := filepath.Glob(filepath.Join(cache, "*"))
		if err != nil || len(left) != 2 {
			t.Fatalf("want the template and its lock, got %v, %v", left, err)
		}
		if n, err := exec.Command("du", "-sm", r.templateAt).Output(); err == nil {
			t.Logf("template: %s MB", strings.Fields(string(n))[0])
		}
	})
}
