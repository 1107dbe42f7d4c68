package locks

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

const (
	processes  = 6
	increments = 40
)

// child is what this test program does as a process of its own.
func child(mode string) int {
	err := func() error {
		db, err := sql.Open("mysql", os.Getenv("ONCEPOST_TEST_DSN"))
		if err != nil {
			return err
		}
		l, err := New(db, Config{Timeout: leastTimeout})
		if err != nil {
			return err
		}
		ctx := context.Background()
		forever := func(context.Context) error { fmt.Println("held"); select {} }
		switch mode {
		case "count":
			for range increments {
				if err := l.With(ctx, "counter", -1, func(ctx context.Context) error { return increment(ctx, db) }); err != nil {
					return err
				}
			}
			return nil
		case "count without a lock":
			for range increments {
				if err := increment(ctx, db); err != nil {
					return err
				}
			}
			return nil
		case "hold":
			return l.With(ctx, "a", 0, forever)
		case "job":
			_, err := l.OncePer(ctx, "accrual", "2026-12-01", forever)
			return err
		}
		return errors.New("no mode " + mode)
	}()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// increment loses updates where two do it at a time.
func increment(ctx context.Context, db *sql.DB) error {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT n FROM counter").Scan(&n); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "UPDATE counter SET n = ?", n+1)
	return err
}

// start starts a child process, and returns when it says "held", if it should.
func start(t *testing.T, s *testdb.Schema, mode string, holds bool) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ONCEPOST_TEST_LOCKS="+mode, "ONCEPOST_TEST_DSN="+s.DSN)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it may have ended
	if holds {
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
			t.Fatalf("%s: %q, %v", mode, line, err)
		}
	}
	return cmd
}

// count lets processes count together, and returns how far they got.
func count(t *testing.T, s *testdb.Schema, mode string) int {
	t.Helper()
	testdb.Exec(t, s.DB, "CREATE TABLE IF NOT EXISTS counter (n INT NOT NULL)")
	testdb.Exec(t, s.DB, "DELETE FROM counter")
	testdb.Exec(t, s.DB, "INSERT INTO counter VALUES (0)")
	var all []*exec.Cmd
	for range processes {
		all = append(all, start(t, s, mode, false))
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	return testdb.Value[int](t, s.DB, "SELECT n FROM counter")
}

// Processes that read, add and write under a lock lose no update; without it they do, or the test would show nothing. (scenario 33)
func TestSerialisation(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		if n := count(t, s, "count"); n != processes*increments {
			t.Errorf("%d of %d", n, processes*increments)
		}
		if n := count(t, s, "count without a lock"); n >= processes*increments {
			t.Errorf("%d: no update was lost without a lock", n)
		}
	})
}

// A holder that is killed frees its lock at once, and one that is frozen within the time-out.
func TestAHolderThatDies(t *testing.T) {
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for signal, most := range map[syscall.Signal]time.Duration{syscall.SIGKILL: leastTimeout - time.Second, syscall.SIGSTOP: leastTimeout + 2*time.Second} {
			l, _ := locker(t, s.DB, 0)
			holder := start(t, s, "hold", true)
			l.refused(t.Context(), t, "a", 0)
			time.Sleep(3 * guardAfter)
			if err := holder.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := l.With(t.Context(), "a", -1, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > most {
				t.Errorf("%s: free after %s", signal, took)
			}
		}
	})
}

// A run whose process was killed is told from one that has ended, and waits for a person unless it may be taken over.
func TestACrashedRun(t *testing.T) {
	eachJobs(t, func(t *testing.T, s *testdb.Schema) {
		l, _ := locker(t, s.DB, 0)
		runner := start(t, s, "job", true)
		j := jobs{t, l}
		if _, err := j.once("accrual", "2026-12-01", nil); !errors.As(err, new(*NotAcquiredError)) {
			t.Errorf("while it runs: %v", err)
		}
		if err := runner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var crashed *CrashedError
		testdb.Eventually(t, "the lock is free", func() bool {
			_, err := j.once("accrual", "2026-12-01", nil)
			return errors.As(err, &crashed)
		})
		if crashed.Process != int64(runner.Process.Pid) || crashed.Job != "accrual" || crashed.Period != "2026-12-01" || crashed.Ago <= 0 ||
			!strings.Contains(crashed.Error(), "did not end") {
			t.Errorf("%+v: %v", crashed, crashed)
		}
		j.ran("accrual", "2026-12-02", nil) // another day's is none of it
		testdb.Exec(t, s.DB, "UPDATE job_runs SET started_at = '2026-01-01' WHERE period = '2026-12-01'")
		if ran, err := j.once("accrual", "2026-12-01", nil, TakeOver()); !ran || err != nil {
			t.Errorf("taken over: %v, %v", ran, err)
		}
		j.done("accrual", "2026-12-01")
		got := testdb.Value[string](t, s.DB, "SELECT CONCAT_WS(' ', attempts, started_at > '2026-01-02', ended_at > started_at) FROM job_runs WHERE period = '2026-12-01'")
		if got != "2 1 1" {
			t.Errorf("attempts, began anew, ended: %s", got)
		}
	})
}
