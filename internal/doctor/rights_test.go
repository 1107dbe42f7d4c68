package doctor

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/testdb"
)

// What is tried is what docs/grants.md says.
func TestRightsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/grants.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	line := regexp.MustCompile(`(?m)^GRANT (.+) ON app\.(\S+) TO 'oncepost_(relay|worker|watch)'@'%';$`)
	for _, m := range line.FindAllStringSubmatch(string(page), -1) {
		if key := m[3] + " " + m[2]; m[1] != "UPDATE" { // of outbox_binding, for --rebind alone
			want[key] = m[1]
		}
	}
	have := map[string]string{}
	for _, r := range needed {
		for role, privileges := range r.of {
			have[role+" "+r.table] = privileges
		}
	}
	if !maps.Equal(have, want) {
		t.Errorf("tried are %v, the page has %v", have, want)
	}
}

// accountFor makes an account with the rights of a part of oncepost, but for what is left out.
func accountFor(s *testdb.Schema, role, without string) string {
	var grants []string
	for _, r := range needed {
		for privilege := range strings.SplitSeq(r.of[role], ", ") {
			if privilege != "" && privilege+" "+r.table != without {
				grants = append(grants, privilege+" ON "+r.table)
			}
		}
	}
	return s.User(grants...)
}

// Each part's account suits it, and lacks what the others have; with one right less it does not.
func TestAccounts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		for _, role := range roles {
			found := mysqlOf(t, Config{OpenDB: opening(accountFor(s, role, "")), Roles: []string{role}})
			healthy(t, found)
			wants(t, found, "mysql.rights", OK, role)
		}
		for role, without := range map[string]string{Relay: "DELETE outbox_messages", Worker: "UPDATE sends", Watch: "INSERT processes"} {
			privilege, table, _ := strings.Cut(without, " ")
			dsn := accountFor(s, role, without)
			found := mysqlOf(t, Config{OpenDB: opening(dsn), Roles: []string{role}})
			wants(t, found, "mysql.rights", Error, "of a "+role, privilege+" on "+table)
			if others := slices.DeleteFunc(found, func(f Finding) bool { return f.Check == "mysql.rights" }); role != Watch {
				healthy(t, others)
			}
		}
		found := mysqlOf(t, Config{OpenDB: opening(accountFor(s, Watch, "INSERT processes"))})
		wants(t, found, "mysql.rights", Error, "of a watch") // it suits nobody
		wants(t, found, "mysql.watching", Warning, "docs/grants.md")
	})
}

// An account that may log in and no more ends no check but those that need more.
func TestAccountWithoutRights(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		found := mysqlOf(t, Config{OpenDB: opening(s.User("INSERT ON outbox_messages"))})
		wants(t, found, "mysql.migrations", Warning, "could not be checked")
		wants(t, found, "mysql.rights", Error, "of a worker", "SELECT on "+migrate.VersionTable)
		wants(t, found, "mysql.named-locks", OK)
	})
}

// A table that is gone although its migration was applied is an error, and no question of rights.
func TestMissingTable(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		migrated(t, s)
		testdb.Exec(t, s.DB, "RENAME TABLE outbox_failed TO gone")
		found := mysqlOf(t, Config{OpenDB: opening(s.DSN)})
		wants(t, found, "mysql.rights", Error, "missing", "outbox_failed")
		for _, f := range found {
			if f.Check == "mysql.watching" && strings.HasPrefix(f.Do, "give it the rights") {
				t.Errorf("the advice is about rights: %s", f.Do)
			}
		}
	})
}
