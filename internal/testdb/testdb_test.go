package testdb

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func exists(t *testing.T, s *Schema, name string) bool {
	t.Helper()
	db, err := sql.Open("mysql", s.Server.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// Each schema is empty and its own, and is dropped even when the test leaves a transaction open in it.
func TestSchemasAreFreshAndDropped(t *testing.T) {
	servers := map[mysqlserver.Flavour]*mysqlserver.Server{}
	var last []*Schema
	for range 2 {
		begin := time.Now()
		t.Run("one", func(t *testing.T) {
			Each(t, func(t *testing.T, s *Schema) {
				if had := servers[s.Flavour]; had != nil && had != s.Server {
					t.Error("a second server for the same flavour")
				}
				servers[s.Flavour] = s.Server
				last = append(last, s)
				if _, err := s.DB.Exec("CREATE TABLE t (a INT PRIMARY KEY)"); err != nil {
					t.Fatal(err)
				}
				tx, err := s.DB.Begin()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
					t.Fatal(err)
				}
			})
		})
		t.Log("both flavours:", time.Since(begin).Round(time.Millisecond))
	}
	for _, s := range last {
		if exists(t, s, s.Name) {
			t.Errorf("%s on %s is still there", s.Name, s.Flavour)
		}
		if err := s.DB.Ping(); err == nil {
			t.Error("the pool is still open")
		}
	}
}

func TestFlavourFromEnvironment(t *testing.T) {
	for value, want := range map[string]int{"": 2, "both": 2, "mysql": 1, "mariadb": 1} {
		t.Setenv(FlavoursEnv, value)
		if got := Flavours(); len(got) != want || want == 1 && string(got[0]) != value {
			t.Errorf("%q: %v", value, got)
		}
	}
	t.Setenv(FlavoursEnv, "postgres")
	if _, err := flavours(); err == nil || !strings.Contains(err.Error(), FlavoursEnv) {
		t.Errorf("want the variable's name, got: %v", err)
	}
}

// An account may do what its grants say and nothing else.
func TestUserHasExactlyItsGrants(t *testing.T) {
	Each(t, func(t *testing.T, s *Schema) {
		for _, table := range []string{"allowed", "other"} {
			if _, err := s.DB.Exec("CREATE TABLE " + table + " (a INT PRIMARY KEY, b INT)"); err != nil {
				t.Fatal(err)
			}
		}
		user := Open(t, s.User("INSERT (a) ON allowed", "SELECT ON allowed"))
		for query, allowed := range map[string]bool{
			"INSERT INTO allowed (a) VALUES (1)":       true,
			"INSERT INTO allowed (a, b) VALUES (2, 2)": false,
			"SELECT a FROM allowed":                    true,
			"SELECT a FROM other":                      false,
			"DELETE FROM allowed":                      false,
			"CREATE TABLE third (a INT)":               false,
		} {
			if _, err := user.Exec(query); (err == nil) != allowed {
				t.Errorf("%s: allowed=%v, error %v", query, allowed, err)
			}
		}
		all := Open(t, s.User("SELECT, DELETE"))
		if _, err := all.Exec("DELETE FROM other"); err != nil {
			t.Error(err)
		}
		if err := Open(t, s.User()).Ping(); err != nil {
			t.Errorf("an account without grants cannot log in: %v", err)
		}
	})
}

// A server of the test's own can be killed and comes back with the data; the shared one is not touched.
func TestOwnServer(t *testing.T) {
	Each(t, func(t *testing.T, shared *Schema) {
		own := OwnServer(t, shared.Flavour, "--max-connections=33")
		if own.Addr() == shared.Server.Addr() {
			t.Fatal("the own server is the shared one")
		}
		s := NewSchemaOn(t, own)
		if _, err := s.DB.Exec("CREATE TABLE t (a INT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		s.User("SELECT")
		if err := own.Kill(); err != nil {
			t.Fatal(err)
		}
		again := Restart(t, own)
		var n int
		if err := s.DB.QueryRow("SELECT COUNT(*) + @@max_connections FROM t").Scan(&n); err != nil || n != 33 {
			t.Fatalf("after the restart: %d, %v", n, err)
		}
		if again.Addr() != own.Addr() {
			t.Errorf("%s became %s", own.Addr(), again.Addr())
		}
		if err := shared.DB.Ping(); err != nil {
			t.Error(err)
		}
	})
}
