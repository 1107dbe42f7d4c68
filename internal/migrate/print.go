package migrate

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/oncepost/oncepost/schemas"
)

// Print writes the SQL of all migrations, for people who apply SQL with tools of their own. It ends with the record of
// what was applied, which relay and worker look at.
func Print(w io.Writer) error {
	var b strings.Builder
	for _, file := range files() {
		sql, err := fs.ReadFile(schemas.MySQL(), file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "-- %s\n%s\n", file, withoutAnnotations(string(sql)))
	}
	fmt.Fprintf(&b, recordTable, VersionTable)
	for _, file := range files() {
		fmt.Fprintf(&b, "INSERT INTO %s (version_id, is_applied) VALUES (%d, TRUE);\n", VersionTable, number(file))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// recordTable is the table that goose makes; a test compares the two. Version 0 is goose's own first record.
const recordTable = `-- what has been applied
CREATE TABLE IF NOT EXISTS %[1]s (
  id BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT,
  version_id BIGINT NOT NULL,
  is_applied BOOLEAN NOT NULL,
  tstamp TIMESTAMP NULL DEFAULT NOW(),
  PRIMARY KEY (id)
);
INSERT INTO %[1]s (version_id, is_applied) VALUES (0, TRUE);
`

func withoutAnnotations(sql string) string {
	var kept []string
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "-- +goose") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
