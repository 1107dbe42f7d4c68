package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/locks"
)

// eachJob runs test with a migrated database on each server, and the environment for jobs.
func eachJob(t *testing.T, test func(t *testing.T, s *testdb.Schema, env []string)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		env := append(baseEnv(t), "ONCEPOST_MYSQL_DSN="+s.DSN)
		fails(t, env, 0, nil, "oncepost", "migrate")
		test(t, s, env)
	})
}

// job is a call of `oncepost job run`.
func job(args ...string) []string { return append([]string{"job", "run"}, args...) }

// A job is done once in a period, whatever instance comes; a failure may be repeated, and its exit code is the command's.
func TestJobOncePer(t *testing.T) {
	eachJob(t, func(t *testing.T, s *testdb.Schema, env []string) {
		daily := func(command ...string) []string {
			return job(append([]string{"accrual", "--once-per", "day", "--time-zone", "Asia/Seoul", "--"}, command...)...)
		}
		fails(t, env, 3, nil, "oncepost", daily("sh", "-c", "exit 3")...)
		fails(t, env, 0, []string{"done: a b"}, "oncepost", daily("echo", "done:", "a b")...)
		fails(t, env, 0, []string{"it has been done"}, "oncepost", daily("sh", "-c", "echo again; exit 9")...)
		fails(t, append(env, "ONCEPOST_JOB_SKIPPED_EXIT_CODE=75"), 75, []string{"it has been done"}, "oncepost", daily("false")...)
		day := testdb.Value[string](t, s.DB, "SELECT period FROM job_runs WHERE state = 'done' AND attempts = 2")
		if want := locks.Day(time.Now().In(time.FixedZone("KST", 9*3600))); day != want {
			t.Errorf("period %s, want %s", day, want)
		}
		fails(t, env, 0, []string{"caught up"}, "oncepost", job("accrual", "--period", "2026-01-01", "--", "echo", "caught up")...)

		p := startWith(t, strings.NewReader("what it reads\n"), env, "oncepost", job("reads", "--once-per=month", "--", "cat")...)
		if code := p.exit(); code != 0 || !strings.Contains(p.out.String(), "what it reads\n") {
			t.Errorf("exit code %d: %s", code, p.out)
		}
	})
}

func TestJobExitCodes(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachJob(t, func(t *testing.T, _ *testdb.Schema, env []string) {
		for _, c := range []struct {
			code  int
			words []string
			args  []string
		}{
			{0, nil, []string{"a", "--", "true"}},
			{143, nil, []string{"a", "--", "sh", "-c", "kill -TERM $$"}},
			{127, []string{"no-such-program"}, []string{"a", "--", "no-such-program"}},
			{126, []string{"permission denied"}, []string{"a", "--", "/etc/passwd"}},
			{2, []string{"a command is needed"}, []string{"a", "--"}},
			{2, []string{"--once-per"}, []string{"a", "--once-per", "year", "--", "true"}},
			{2, []string{"exclude each other"}, []string{"a", "--once-per=day", "--period=x", "--", "true"}},
			{2, []string{"--time-zone"}, []string{"a", "--time-zone=Mars", "--", "true"}},
			{2, []string{"--lock-timeout"}, []string{"a", "--lock-timeout=1s", "--", "true"}},
			{2, []string{"--wait"}, []string{"a", "--wait=-1s", "--", "true"}},
			{2, []string{"--take-over"}, []string{"a", "--take-over", "--", "true"}},
			{2, []string{"--time-zone"}, []string{"a", "--time-zone=Asia/Seoul", "--", "true"}},
			{2, []string{"--kill-after"}, []string{"a", "--kill-after=0s", "--", "true"}},
			{2, []string{"--once-per is \"\""}, []string{"a", "--once-per", "", "--", "true"}},
			{2, []string{"printable ASCII"}, []string{"a", "--period", "", "--", "true"}},
			{2, []string{"--time-zone"}, []string{"a", "--time-zone=Local", "--", "true"}},
			{2, []string{"needs a name"}, []string{"", "--", "true"}},
			{2, []string{"--skipped-exit-code"}, []string{"a", "--skipped-exit-code=256", "--", "true"}},
			{2, []string{"printable ASCII"}, []string{"a b", "--once-per=day", "--", "true"}},
		} {
			fails(t, env, c.code, c.words, "oncepost", job(c.args...)...)
		}
		fails(t, append(env, "ONCEPOST_MYSQL_DSN=root@tcp(127.0.0.1:1)/app"), 125, []string{"connect"}, "oncepost", job("a", "--", "echo", "ran")...)
	})
}

// jobHolder waits until a job's lock is held, and returns the session.
func jobHolder(t *testing.T, s *testdb.Schema, name string) (id int64) {
	t.Helper()
	until(t, "the job's lock is held", func() bool {
		id = testdb.Value[int64](t, s.DB, "SELECT COALESCE(IS_USED_LOCK(?), 0)", locks.Name(s.Name, "job/"+name))
		return id != 0
	})
	return id
}

// Without a period a job runs each time, and not beside itself.
func TestJobNotBesideItself(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachJob(t, func(t *testing.T, s *testdb.Schema, env []string) {
		first := start(t, env, "oncepost", job("a", "--", "sh", "-c", "echo began; sleep 2")...)
		first.await("began")
		jobHolder(t, s, "a")
		fails(t, env, 0, []string{"another is at it"}, "oncepost", job("a", "--", "echo", "ran")...)
		fails(t, env, 75, []string{"another is at it"}, "oncepost", job("a", "--skipped-exit-code=75", "--", "echo", "ran")...)
		fails(t, env, 0, []string{"other ran"}, "oncepost", job("b", "--", "echo", "other ran")...)
		fails(t, env, 0, []string{"waited"}, "oncepost", job("a", "--wait=1m", "--", "echo", "waited")...)
		if code := first.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// Another period's run is not this one's: it is waited for, or this one's is an error.
func TestJobOfAnotherPeriod(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachJob(t, func(t *testing.T, s *testdb.Schema, env []string) {
		first := start(t, env, "oncepost", job("a", "--period=07h", "--", "sh", "-c", "echo began; sleep 2")...)
		first.await("began")
		fails(t, env, 0, []string{"another is at it"}, "oncepost", job("a", "--period=07h", "--", "echo", "ran")...)
		fails(t, env, 125, []string{"job a of 08h was not run", "still goes on"}, "oncepost", job("a", "--period=08h", "--", "echo", "ran")...)
		fails(t, env, 0, []string{"ran"}, "oncepost", job("a", "--period=08h", "--wait=1m", "--", "echo", "ran")...)
		fails(t, env, 0, []string{"it has been done"}, "oncepost", job("a", "--period=07h", "--wait=1m", "--", "echo", "ran")...)
	})
}

// A child has the time of --kill-after too, after the command itself has gone.
func TestJobLetsChildrenEnd(t *testing.T) {
	t.Parallel() // it waits, most of the time
	env := append(baseEnv(t), "ONCEPOST_MYSQL_DSN="+testdb.NewSchema(t, testdb.Flavours()[0]).DSN)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		p := start(t, env, "oncepost", job("a", "--", "sh", "-c", `sh -c 'trap "sleep 1; echo tidied up; exit 0" TERM; echo began; while :; do sleep 0.1; done' & wait`)...)
		p.await("began")
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != 128+int(syscall.SIGTERM) || !strings.Contains(p.out.String(), "tidied up") {
			t.Errorf("%s: exit code %d", sig, code)
		}
	}
}

// The command and its children get SIGTERM when the lock is lost, and people hear of it.
func TestJobLosesItsLock(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachJob(t, func(t *testing.T, s *testdb.Schema, env []string) {
		alerts, ses := alertEnv(t)
		p := start(t, append(env, alerts...), "oncepost", job("a", "--once-per=day", "--lock-timeout=3s", "--", "sh", "-c",
			`trap 'echo got TERM; exit 7' TERM; sh -c 'trap "echo child got TERM; exit 0" TERM; echo began; while :; do sleep 0.1; done' & while :; do sleep 0.1; done`)...)
		p.await("began")
		testdb.Exec(t, s.DB, fmt.Sprintf("KILL %d", jobHolder(t, s, "a")))
		if code := p.exit(); code != 7 {
			t.Errorf("exit code %d, want the command's own", code)
		}
		for _, words := range []string{"got TERM", "child got TERM", "locks: job/a lost", "level=ERROR", "connection_gone"} {
			if !strings.Contains(p.out.String(), words) {
				t.Errorf("does not say %q", words)
			}
		}
		if m := mailsAt(t, ses, 1)[0]; !strings.Contains(m.Subject, "job a: ") || !strings.Contains(m.Text, "point: connection_gone") {
			t.Errorf("%q: %q", m.Subject, m.Text)
		}
		fails(t, env, 0, []string{"ran again"}, "oncepost", job("a", "--once-per=day", "--", "echo", "ran again")...)
	})
}

// One that ignores SIGTERM gets SIGKILL; so does a child that it leaves behind.
func TestJobIgnoresSIGTERM(t *testing.T) {
	t.Parallel() // it waits, most of the time
	env := append(baseEnv(t), "ONCEPOST_MYSQL_DSN="+testdb.NewSchema(t, testdb.Flavours()[0]).DSN)
	p := start(t, env, "oncepost", job("a", "--kill-after=500ms", "--", "sh", "-c", `trap '' TERM; echo began; sh -c 'while :; do sleep 0.1; done'`)...)
	p.await("began")
	all := descendants(t, p.cmd.Process.Pid)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
	for _, pid := range all {
		until(t, "its processes have gone", func() bool { return !alive(pid) })
	}
}

// oncepost itself is killed: the command gets SIGTERM, and the run counts as crashed, for a person or for --take-over.
func TestJobCrashes(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachJob(t, func(t *testing.T, s *testdb.Schema, env []string) {
		p := start(t, env, "oncepost", job("a", "--once-per=day", "--", "sh", "-c", "echo began; exec sleep 600")...)
		p.await("began")
		child := descendants(t, p.cmd.Process.Pid)
		if len(child) != 1 {
			t.Fatalf("children %v", child)
		}
		p.kill()
		until(t, "the command has gone", func() bool { return !alive(child[0]) })
		until(t, "the lock is free", func() bool {
			return testdb.Value[int64](t, s.DB, "SELECT COALESCE(IS_USED_LOCK(?), 0)", locks.Name(s.Name, "job/a")) == 0
		})
		fails(t, env, 125, []string{"did not end", "job_runs"}, "oncepost", job("a", "--once-per=day", "--", "echo", "ran")...)
		fails(t, env, 0, []string{"took over"}, "oncepost", job("a", "--once-per=day", "--take-over", "--", "echo", "took over")...)
		fails(t, env, 0, []string{"it has been done"}, "oncepost", job("a", "--once-per=day", "--", "echo", "ran")...)
	})
}
