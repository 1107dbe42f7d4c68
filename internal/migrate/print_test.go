package migrate

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// autoIncrement is what SHOW CREATE TABLE says of a table's rows, not of its definition.
var autoIncrement = regexp.MustCompile(` AUTO_INCREMENT=[0-9]+`)

// definitions are the tables of a database as the server shows them.
func definitions(t *testing.T, s *testdb.Schema) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range testdb.Column[string](t, s.DB, "SHOW TABLES") {
		var name, definition string
		if err := s.DB.QueryRowContext(t.Context(), "SHOW CREATE TABLE "+table).Scan(&name, &definition); err != nil {
			t.Fatal(err)
		}
		all[name] = autoIncrement.ReplaceAllString(definition, "")
	}
	return all
}

// The printed SQL, applied by any client, is as good as Up; so also its table of versions is the one that goose makes.
func TestPrintedSQLIsAsGoodAsUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		byUp := testdb.NewSchema(t, s.Flavour)
		up(t, byUp.DB)
		testdb.Exec(t, testdb.Open(t, s.DSN+"?multiStatements=true"), printed(t))
		if err := Check(t.Context(), s.DB); err != nil {
			t.Errorf("Check: %v", err)
		}
		if applied := up(t, s.DB); len(applied) != 0 {
			t.Errorf("Up applied %v", applied)
		}
		list(t, s.DB, Latest())
		got, want := definitions(t, s), definitions(t, byUp)
		if !maps.Equal(got, want) {
			t.Errorf("tables\n%v\nwant\n%v", got, want)
		}
		const record = "SELECT CONCAT(version_id, ' ', is_applied) FROM " + VersionTable + " ORDER BY id"
		if got, want := testdb.Column[string](t, s.DB, record), testdb.Column[string](t, byUp.DB, record); strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("record %v, want %v", got, want)
		}
		testdb.Exec(t, s.DB, plainInsert)
	})
}

func TestPrintedSQLHasNoToolsAnnotations(t *testing.T) {
	if sql := printed(t); strings.Contains(sql, "+goose") {
		t.Error("the SQL has goose annotations")
	}
}
