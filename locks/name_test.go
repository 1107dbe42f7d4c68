package locks

import (
	"regexp"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// Names for any input fit both servers: MySQL takes 64 characters and folds their case.
func TestNameFitsBothServers(t *testing.T) {
	form := regexp.MustCompile(`^oncepost:[a-z0-9-]*:[0-9a-f]{24}$`)
	for _, key := range []string{"", "a", "shard/07", "JOB", "annual leave é 한국어 👩", strings.Repeat("x", 500), "a\x00b\n"} {
		name := Name("app", key)
		if len(name) > maxName || !form.MatchString(name) {
			t.Errorf("%q: %s (%d characters)", key, name, len(name))
		}
	}
}

func TestNamesDiffer(t *testing.T) {
	seen := map[string][2]string{}
	for _, in := range [][2]string{
		{"app", "a"},
		{"app2", "a"},
		{"APP", "a"},
		{"app", "A"},
		{"app", "b"},
		{"ap", "pa"},
		{"app", ""},
		{"", "app"},
		{"app", strings.Repeat("x", 100) + "1"},
		{"app", strings.Repeat("x", 100) + "2"},
		{"appx", strings.Repeat("x", 100)},
		{"app", strings.Repeat("x", 101)},
		{"app", "é"},
		{"app", "è"},
	} {
		name := Name(in[0], in[1])
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q have one name", in, other)
		}
		seen[name] = in
		if Name(in[0], in[1]) != name {
			t.Error("a name is not the same the second time")
		}
	}
}

// Two applications on one server do not take each other's locks. (scenario 38)
func TestDatabasesHaveLocksOfTheirOwn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for _, database := range []string{s.Name, s.Name + "2", strings.ToUpper(s.Name)} {
			got, err := openSession(t, s.DB, 0).TryLock(t.Context(), Name(database, "shard/0"))
			want(t, database, got, err, true)
		}
	})
}
