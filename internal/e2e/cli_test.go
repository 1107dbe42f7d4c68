package e2e

import (
	"database/sql"
	"strings"
	"syscall"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// fails runs a command that must end with the code and say each of the words.
func fails(t *testing.T, env []string, code int, words []string, program string, args ...string) {
	t.Helper()
	got, out := run(t, env, program, args...)
	if got != code {
		t.Errorf("%s %s: exit code %d, want %d", program, strings.Join(args, " "), got, code)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			t.Errorf("%s %s does not say %q", program, strings.Join(args, " "), word)
		}
	}
}

func TestBadCallsExitWith2(t *testing.T) {
	for _, call := range [][]string{
		{"oncepost", "nonsense"},
		{"oncepost", "relay", "--no-such-flag"},
		{"oncepost", "relay", "--max-starts", "many"},
		{"oncepost", "relay", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--max-starts", "0"},
		{"oncepost", "relay", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--grace", "0s"},
		{"oncepost", "relay", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--max-sends", "0"},
		{"oncepost", "worker", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--max-sends", "-1"},
		{"oncepost", "worker", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--send-rate", "-1"},
		{"oncepost", "relay", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--send-rate-share", "1.1"},
		{"oncepost", "sending", "stop", "--by", "x"},
		{"oncepost", "sending", "stop", "--why", "y"},
		{"oncepost", "migrate", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--wait", "0s"},
		{"oncepost", "enqueue", "welcome"}, // no payload
		{"oncepost", "enqueue", "welcome", "--payload", "{}", "--delay", "1m", "--deliver-at", "2030-01-31T09:00:00Z"},
		{"oncepost", "resolve", "an-id", "perhaps", "--by", "x", "--why", "y"},
		{"oncepost", "resolve", "an-id", "sent", "--by", "x"},
		{"oncepost", "failed", "retry", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app"},
		{"oncepost", "failed", "retry", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--all"}, // nobody can be asked
		{"oncepost", "failed", "retry", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "an-id", "--type", "welcome"},
		{"oncepost", "failed", "list", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--limit", "0"},
		{"oncepost", "failed", "list", "--mysql-dsn", "app@tcp(127.0.0.1:1)/app", "--type", "a' OR 'b"},
		{"oncepost", "failed", "discard", "an-id", "--by", "x"},
		{"oncepost", "doctor", "--role", "producer"},
		{"oncepost", "doctor", "--send-test", "nobody"},
		{"oncepost-dev", "nonsense"},
		{"oncepost-dev", "up", "--database", "postgres"},
		{"oncepost-dev", "demo", "--database", "mysql", "--mysql-dsn", "root@tcp(127.0.0.1:1)/a"},
	} {
		t.Run(strings.Join(call, " "), func(t *testing.T) {
			fails(t, baseEnv(t), 2, []string{call[0] + ": "}, call[0], call[1:]...)
		})
	}
}

func TestVersion(t *testing.T) {
	code, out := run(t, baseEnv(t), "oncepost", "version")
	if code != 0 || !strings.HasPrefix(out, "oncepost ") || !strings.Contains(out, "tables version") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestHelp(t *testing.T) {
	for _, program := range []string{"oncepost", "oncepost-dev", "oncepost-ses"} {
		if code, out := run(t, baseEnv(t), program, "--help"); code != 0 || !strings.Contains(out, "Usage: "+program) {
			t.Errorf("%s --help: exit code %d: %s", program, code, out)
		}
	}
}

// What a user looks for first is named where it is looked for.
func TestHelpOfMigrateNamesPrint(t *testing.T) {
	if code, out := run(t, baseEnv(t), "oncepost", "migrate", "--help"); code != 0 || !strings.Contains(out, "oncepost migrate --print") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

const password = "hunter2hunter2"

// A payload that is too long is told by the limit: how much more would have come is not known.
func TestEnqueueTooMuch(t *testing.T) {
	for _, size := range []int{1<<20 + 1, 3 << 20} {
		p := startWith(t, strings.NewReader(`"`+strings.Repeat("x", size-3)+"\"\n"),
			append(baseEnv(t), "ONCEPOST_MYSQL_DSN=app@tcp(127.0.0.1:1)/app"), "oncepost", "enqueue", "welcome", "--payload", "-")
		code := p.exit()
		if out := p.out.String(); size == 1<<20+1 && !strings.Contains(out, "connection refused") ||
			size > 2<<20 && (code != 1 || !strings.Contains(out, "longer than the 1048576 bytes") || strings.Contains(out, "2097152")) {
			t.Errorf("%d bytes: exit code %d: %s", size, code, out)
		}
	}
}

// A database that cannot be reached is said plainly, without the password, by every command that does one thing and ends.
func TestUnreachableDatabase(t *testing.T) {
	env := append(baseEnv(t), "ONCEPOST_MYSQL_DSN=app:"+password+"@tcp("+newDoor(t).addr+")/app", "ONCEPOST_MAIL_FROM=mail@example.com")
	for _, args := range [][]string{
		{"migrate", "status"}, {"enqueue", "welcome", "--payload", "{}"}, {"migrate", "--wait", "2s"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			code, out := run(t, env, "oncepost", args...)
			if code != 1 || !strings.Contains(out, "connection refused") {
				t.Errorf("exit code %d: %s", code, out)
			}
			if strings.Contains(out, password) {
				t.Errorf("the password is shown: %s", out)
			}
		})
	}
	fails(t, baseEnv(t), 1, []string{"ONCEPOST_MYSQL_DSN"}, "oncepost", "relay")
}

// Relay and worker wait for a database that is away when they start, and end in order meanwhile.
func TestRelayAndWorkerWaitForMySQL(t *testing.T) {
	w := one(t)
	w.must("migrate")
	away := newDoor(t)
	w.env = append(w.env, "ONCEPOST_MYSQL_DSN=root:"+password+"@tcp("+away.addr+")/"+w.schema.Name)
	for _, command := range []string{"relay", "worker"} {
		p := w.start("oncepost", command)
		if out := p.await("MySQL is not ready, will try again"); !strings.Contains(out, "connection refused") || strings.Contains(out, password) {
			t.Errorf("%s says %s", command, out)
		}
		p.stop(syscall.SIGTERM)
	}

	door := newDoor(t)
	w.env = append(w.env, "ONCEPOST_MYSQL_DSN=root@tcp("+door.addr+")/"+w.schema.Name)
	relay, worker := w.start("oncepost", "relay"), w.start("oncepost", "worker")
	relay.await("MySQL is not ready, will try again")
	worker.await("MySQL is not ready, will try again")
	ids := w.enqueue(1) // by a connection of the test's own
	door.open(w.schema.Server.Addr())
	relay.await("relay running")
	worker.await("worker running")
	w.mails(1)
	w.onceEach(ids)
	relay.stop(syscall.SIGTERM)
	worker.stop(syscall.SIGTERM)
}

// What no waiting can cure ends relay and worker at once.
func TestRefusedByTheDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		env := append(baseEnv(t), "ONCEPOST_MAIL_FROM=mail@example.com", "AWS_REGION=us-east-1")
		for word, dsn := range map[string]string{
			"1045": "nobody:" + password + "@tcp(" + s.Server.Addr() + ")/" + s.Name,
			"1049": "root@tcp(" + s.Server.Addr() + ")/no_such_database",
			"1044": s.User() + s.Name,
			"DSN":  "nonsense:" + password,
		} {
			for _, command := range []string{"relay", "worker"} {
				code, out := run(t, append(env, "ONCEPOST_MYSQL_DSN="+dsn), "oncepost", command)
				if code != 1 || !strings.Contains(out, word) || strings.Contains(out, "try again") || strings.Contains(out, password) {
					t.Errorf("%s with %s: exit code %d: %s", command, word, code, out)
				}
			}
		}
	})
}

// Relay and worker never migrate: they say what to run, and leave the database as it is.
func TestUnmigratedDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		w := newWorld(t, s)
		for _, command := range []string{"relay", "worker"} {
			fails(t, w.env, 1, []string{"run `oncepost migrate`"}, "oncepost", command)
		}
		fails(t, w.env, 1, []string{"pending", "run `oncepost migrate`"}, "oncepost", "migrate", "status")
		fails(t, w.env, 1, []string{"run `oncepost migrate`"}, "oncepost", "enqueue", "welcome", "--payload", "{}")
		var tables int
		err := s.DB.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", s.Name).Scan(&tables)
		if err != nil || tables != 0 {
			t.Errorf("%d tables were made: %v", tables, err)
		}
		w.must("migrate")
		if out := w.must("migrate", "status"); strings.Contains(out, "pending") || !strings.Contains(out, "applied") {
			t.Errorf("after migrate: %s", out)
		}
		if out := w.must("migrate"); strings.Contains(out, "applied 0") {
			t.Errorf("the second migrate applies again: %s", out)
		}
	})
}

// A table of the same name that is somebody else's is explained by every command that meets it.
func TestForeignTableIsExplained(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "CREATE TABLE outbox_messages (id INT PRIMARY KEY AUTO_INCREMENT, payload TEXT)")
		env := append(baseEnv(t), "ONCEPOST_MYSQL_DSN="+s.DSN)
		for _, args := range [][]string{{"migrate"}, {"migrate", "status"}, {"enqueue", "welcome", "--payload", "{}"}} {
			fails(t, env, 1, []string{"that is not oncepost's (its columns: id, payload)", "RENAME TABLE", "docs/moving.md"}, "oncepost", args...)
		}
	})
}

// What `migrate --print` prints, applied with another tool, is a migrated database.
func TestPrintedMigrations(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		w := newWorld(t, s)
		db, err := sql.Open("mysql", s.DSN+"?multiStatements=true")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), w.must("migrate", "--print")); err != nil {
			t.Fatal(err)
		}
		w.must("migrate", "status")
		relay := w.start("oncepost", "relay", "--with-worker")
		relay.await("relay running")
		w.enqueue(1)
		w.mails(1)
	})
}
