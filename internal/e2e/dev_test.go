package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

const isUp = "Ctrl-C stops everything"

func TestDemo(t *testing.T) {
	each(t, func(t *testing.T, env []string, dir string) {
		for _, try := range []string{"first", "again on the same folder"} {
			demo := start(t, env, "oncepost-dev", "demo", "--once")
			demo.await("The business at work")
			children := descendants(t, demo.cmd.Process.Pid)
			if len(children) == 0 {
				t.Error("no child process: this does not test that none is left")
			}
			if code := demo.exit(); code != 0 {
				t.Fatalf("%s: exit code %d", try, code)
			}
			out := demo.out.String()
			for _, want := range []string{
				"8 of 8 came out as they should", "DuplicateError", "nothing: rolled back", "예시 주식회사",
				"0 are left in outbox_messages and 0 are in outbox_failed",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%s: the demo does not say %q", try, want)
				}
			}
			gone(t, children)
		}
		if _, err := os.Stat(filepath.Join(dir, "oncepost-dev.log")); err != nil {
			t.Errorf("no log: %v", err)
		}
	})
}

// With a database of one's own no server is started, and the tables are there.
func TestDemoOnOwnDatabase(t *testing.T) {
	s := testdb.NewSchema(t, testdb.Flavours()[0])
	dir := t.TempDir()
	code, out := run(t, append(baseEnv(t), "ONCEPOST_DEV_DIR="+dir, "ONCEPOST_DEV_MYSQL_DSN="+s.DSN), "oncepost-dev", "demo", "--once")
	if code != 0 || !strings.Contains(out, "8 of 8 came out as they should") {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, string(s.Flavour))); err == nil {
		t.Error("a private server was made as well")
	}
	var companies int
	if err := s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM demo_companies").Scan(&companies); err != nil || companies != 4 {
		t.Errorf("%d companies, want 4: one of the five was rolled back (%v)", companies, err)
	}
}

// A password of one's own is shown nowhere, and no line is printed that would not work without it.
func TestUpWithAPassword(t *testing.T) {
	s := testdb.NewSchema(t, testdb.Flavours()[0])
	dsn := s.User("ALL")
	_, rest, _ := strings.Cut(dsn, ":")
	password, _, _ := strings.Cut(rest, "@")
	up := start(t, append(baseEnv(t), "ONCEPOST_DEV_DIR="+t.TempDir(), "ONCEPOST_DEV_MYSQL_DSN="+dsn), "oncepost-dev", "up")
	out := up.await(isUp)
	if strings.Contains(out, password) || strings.Contains(out, "export ONCEPOST_MYSQL_DSN") || !strings.Contains(out, "the DSN you gave") {
		t.Errorf("up says %s", out)
	}
	up.stop(syscall.SIGTERM)
}

// What the screen offers for a first mail works as it is printed.
func TestUpShowsAWayThatWorks(t *testing.T) {
	up := start(t, devEnv(t, quickest(), filepath.Join(t.TempDir(), "dev")), "oncepost-dev", "up")
	out := up.await(isUp)
	_, lines, _ := strings.Cut(out, "Send a mail:\n")
	lines, _, found := strings.Cut(lines, "\nor the same")
	if !found || strings.Count(lines, "oncepost enqueue welcome") != 1 {
		t.Fatalf("no lines to copy: %s", out)
	}
	sh := exec.CommandContext(t.Context(), "/bin/sh", "-ec", lines)
	sh.Env = baseEnv(t)
	if said, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", lines, err, said)
	}
	if m := mailsAt(t, addresses(t, out)["SES endpoint"], 1)[0]; !strings.Contains(strings.Join(m.To, " "), "first.user@example.com") {
		t.Errorf("the mail went to %v", m.To)
	}
	up.stop(syscall.SIGTERM)
}

// A stack that is killed comes back on the same folder: same addresses, mails still there, what had not been sent (not
// due yet, or refused by SES so far) is sent, and nothing is sent twice.
func TestUpAfterKill(t *testing.T) {
	each(t, func(t *testing.T, env []string, dir string) {
		up := start(t, env, "oncepost-dev", "up")
		out := up.await(isUp)
		at := addresses(t, out)
		children := descendants(t, up.cmd.Process.Pid)

		fails(t, env, 1, []string{"already runs on " + dir, "--dir"}, "oncepost-dev", "up")

		client := append(baseEnv(t), "ONCEPOST_MYSQL_DSN="+at["MySQL DSN"])
		enqueue(t, client, "now", "--payload", welcome("now@example.com"))
		mailsAt(t, at["SES endpoint"], 1)
		enqueue(t, client, "later", "--payload", welcome("later@example.com"), "--delay", "5s")
		awaitStarted(t, client, "later")
		refuse(t, at["SES endpoint"])
		enqueue(t, client, "refused", "--payload", welcome("refused@example.com"))
		awaitRefusal(t, at["Temporal"], "refused")
		up.kill()
		gone(t, children)

		up = start(t, env, "oncepost-dev", "up")
		again := addresses(t, up.await(isUp))
		for name, address := range at {
			if again[name] != address {
				t.Errorf("%s is %s after the restart, was %s", name, again[name], address)
			}
		}
		enqueue(t, client, "after", "--payload", welcome("after@example.com"))
		once(t, mailsAt(t, at["SES endpoint"], 4), "now", "later", "refused", "after")
		children = descendants(t, up.cmd.Process.Pid)
		up.stop(syscall.SIGINT)
		gone(t, children)

		// And once more after a stop in order: nothing that was sent is sent again.
		up = start(t, env, "oncepost-dev", "up")
		up.await(isUp)
		enqueue(t, client, "last", "--payload", welcome("last@example.com"))
		once(t, mailsAt(t, at["SES endpoint"], 5), "now", "later", "refused", "after", "last")
		up.stop(syscall.SIGTERM)
	})
}

// When a part dies, the rest ends too, and it is said which one it was.
func TestUpWhenTheDatabaseDies(t *testing.T) {
	each(t, func(t *testing.T, env []string, _ string) {
		up := start(t, env, "oncepost-dev", "up")
		up.await(isUp)
		children := descendants(t, up.cmd.Process.Pid)
		if len(children) != 1 {
			t.Fatalf("children %v, want the database server alone", children)
		}
		if err := syscall.Kill(children[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := up.exit(); code != 1 {
			t.Errorf("exit code %d", code)
		}
		if out := up.out.String(); !strings.Contains(out, "database died") {
			t.Error("it does not say that the database died")
		}
	})
}

// Stopped while it starts, it leaves nothing, and the folder is as good as new.
func TestUpStoppedWhileStarting(t *testing.T) {
	env := devEnv(t, quickest(), filepath.Join(t.TempDir(), "dev"))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		up := start(t, env, "oncepost-dev", "up")
		up.await("everything is kept in")
		var children []int
		until(t, "the database is a process", func() bool {
			children = descendants(t, up.cmd.Process.Pid)
			return len(children) > 0
		})
		up.stop(sig)
		gone(t, children)
	}
	up := start(t, env, "oncepost-dev", "up")
	up.await(isUp)
	up.stop(syscall.SIGINT)
}
