package doctor

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

func TestHealthyDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		found := mysqlOf(t, Config{OpenDB: opening(s.DSN), Roles: roles})
		healthy(t, found)
		for _, f := range found {
			if f.Severity != OK {
				t.Errorf("%s %s: %s", f.Severity, f.Check, f.Text)
			}
		}
		if len(found) != 18 {
			t.Errorf("%d findings", len(found))
		}
	})
}

// What cannot be reached ends the checks of its server, and says so once.
func TestUnreachableDatabase(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // which never says a word
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, l)
	found := mysqlOf(t, Config{OpenDB: opening("app:hunter2@tcp(" + l.Addr().String() + ")/app"), Timeout: 200 * time.Millisecond})
	wants(t, found, "mysql.reachable", Error, "cannot be reached")
	wants(t, found, "mysql.rest", Note, "mysql.version", "mysql.watching")
	found = mysqlOf(t, Config{OpenDB: opening("")})
	wants(t, found, "mysql.reachable", Error, "ONCEPOST_MYSQL_DSN")
	if len(found) != 2 {
		t.Errorf("%d findings", len(found))
	}
}

func TestDatabaseWithoutTables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		found := mysqlOf(t, Config{OpenDB: opening(s.DSN)})
		wants(t, found, "mysql.migrations", Error, "oncepost migrate")
		wants(t, found, "mysql.rest", Note, "mysql.rights")
		only(t, found, "mysql.migrations")
	})
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]Severity{
		"9.7.0": OK, "8.0.16": OK, "8.0.15": Error, "5.7.44-log": Error, "8.0.36-28": OK, "8.0.mysql_aurora.3.04.0": Warning,
		"10.11.6-MariaDB-1": OK, "5.5.5-10.11.2-MariaDB": OK, "11.4.2-MariaDB": OK, "10.6.18-MariaDB": Error, "8.0.11-TiDB-v7.5.0": Error,
	} {
		d := &database{version: version, kind: outbox.KindOf(version)}
		found := run(t.Context(), time.Second, []check{{name: "v", look: d.supported}})
		if got := Worst(found); got != want {
			t.Errorf("%s: %s, want %s: %v", version, got, want, found)
		}
	}
}

// Servers that are set up in a way that does harm.
func TestServersSetUpBadly(t *testing.T) {
	for _, tc := range []struct {
		name     string
		flags    []string
		after    []string // statements of root, once the tables are there
		check    string
		severity Severity
		words    []string
		also     []string
		only     mysqlserver.Flavour
	}{
		{name: "read-only", after: []string{"SET GLOBAL read_only = ON"}, check: "mysql.read-only", severity: Error, words: []string{"writer"}, also: []string{"mysql.watching"}},
		{name: "packet", flags: []string{"--max-allowed-packet=1048576"}, check: "mysql.max-allowed-packet", severity: Warning, words: []string{"1048576"}},
		{
			name: "binlog", flags: []string{"--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"}, check: "mysql.binlog-format", severity: Error,
			words: []string{"STATEMENT", "ROW"}, also: []string{"mysql.watching"},
		},
		{
			name: "serializable", flags: []string{"--transaction-isolation=SERIALIZABLE"}, check: "mysql.isolation", severity: Warning,
			words: []string{"SERIALIZABLE"},
		},
		{name: "connections", flags: []string{"--max-connections=10"}, check: "mysql.connections", severity: Warning, words: []string{"max_connections"}},
		{
			name: "galera", flags: []string{"--wsrep-on=ON", "--binlog-format=ROW"}, check: "mysql.cluster", severity: Error,
			words: []string{"Galera", "docs/clusters.md"}, only: mysqlserver.MariaDB,
		},
		{
			name: "group", flags: []string{"--plugin-load-add=group_replication.so", "--group-replication-single-primary-mode=OFF"},
			check: "mysql.cluster", severity: Error, words: []string{"several primaries"}, only: mysqlserver.MySQL,
		},
		{
			name: "checks off", after: []string{"SET GLOBAL check_constraint_checks = OFF"}, check: "mysql.constraints", severity: Error,
			words: []string{"not enforced", "outbox_payload_is_json"}, only: mysqlserver.MariaDB,
		},
	} {
		for _, f := range testdb.Flavours() {
			if tc.only != "" && tc.only != f {
				continue
			}
			t.Run(tc.name+"/"+string(f), func(t *testing.T) {
				s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f, tc.flags...))
				migrated(t, s)
				for _, statement := range tc.after {
					testdb.Exec(t, s.DB, statement)
				}
				if tc.name == "connections" {
					for range 5 {
						testdb.Conn(t, s.DB)
					}
				}
				found := mysqlOf(t, Config{OpenDB: opening(s.DSN)})
				wants(t, found, tc.check, tc.severity, tc.words...)
				only(t, found, append(tc.also, tc.check)...)
			})
		}
	}
}

// What something between here and the database may do to sessions.
func TestSessionsThatAreNotAsAskedFor(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		for _, tc := range []struct{ parameter, check, word string }{
			{"time_zone=%27%2B02%3A00%27", "mysql.time-zone", "2h0m0s"},
			{"charset=latin1", "mysql.charset", "latin1"},
		} {
			found := mysqlOf(t, Config{OpenDB: plainly(s.DSN + "?" + tc.parameter)})
			wants(t, found, tc.check, Error, tc.word)
			only(t, found, tc.check)
		}
	})
}

func TestClocksThatDiffer(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for off, want := range map[time.Duration]Severity{0: OK, -10 * time.Second: Note, 10 * time.Second: Note, 10 * time.Minute: Warning, -time.Hour: Warning} {
			found := mysqlOf(t, Config{OpenDB: opening(s.DSN), Now: func() time.Time { return time.Now().Add(off) }})
			wants(t, found, "mysql.clock", want)
		}
	})
}

func TestTablesThatWereChanged(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		statements := []string{
			"ALTER TABLE job_runs ENGINE=MyISAM",
			"ALTER TABLE outbox_failed MODIFY payload MEDIUMTEXT CHARACTER SET latin1 NOT NULL",
			"ALTER TABLE outbox_messages DROP CONSTRAINT outbox_payload_is_json",
		}
		if s.Flavour == mysqlserver.MySQL {
			statements = append(statements, "ALTER TABLE outbox_messages ALTER CHECK outbox_priority_is_1_to_5 NOT ENFORCED")
		}
		for _, statement := range statements {
			testdb.Exec(t, s.DB, statement)
		}
		found := mysqlOf(t, Config{OpenDB: opening(s.DSN)})
		wants(t, found, "mysql.engine", Error, "job_runs (MyISAM)")
		wants(t, found, "mysql.columns", Error, "outbox_failed.payload (latin1)")
		wants(t, found, "mysql.constraints", Error, "lacks CHECK constraints", "outbox_payload_is_json")
		if s.Flavour == mysqlserver.MySQL {
			wants(t, found, "mysql.constraints", Error, "not enforced", "outbox_priority_is_1_to_5")
		}
	})
}

// The server's own limit for an account.
func TestAccountOfFewConnections(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		dsn := s.User("SELECT, INSERT, UPDATE, DELETE")
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		root := testdb.Open(t, s.Server.DSN(""))
		testdb.Exec(t, root, fmt.Sprintf("ALTER USER '%s'@'%%' WITH MAX_USER_CONNECTIONS 4", cfg.User))
		wants(t, mysqlOf(t, Config{OpenDB: opening(dsn)}), "mysql.connections", Error, "this account 4")
	})
}
