package migrate

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/schemas"
)

var fileName = regexp.MustCompile(`^([0-9]{5})_[a-z0-9_]+\.sql$`)

func readMigration(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(schemas.MySQL(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFilesAreNumberedWithoutAGap(t *testing.T) {
	all, err := fs.ReadDir(schemas.MySQL(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range all {
		m := fileName.FindStringSubmatch(entry.Name())
		if want := fmt.Sprintf("%05d", i+1); m == nil || m[1] != want {
			t.Errorf("%s: want a name like %s_words.sql", entry.Name(), want)
		}
	}
	if Latest() != int64(len(all)) || len(files()) != len(all) {
		t.Errorf("latest is %d of %d files", Latest(), len(all))
	}
}

// MySQL's DDL is not transactional: a file of two statements could be left half done, and its repetition would fail at the
// first. One statement that can be repeated cannot.
func TestFilesHoldOneRepeatableStatement(t *testing.T) {
	repeatable := regexp.MustCompile(`^(CREATE TABLE IF NOT EXISTS|INSERT IGNORE INTO) `)
	for _, name := range files() {
		text := readMigration(t, name)
		if !strings.HasPrefix(text, "-- +goose NO TRANSACTION\n-- +goose Up\n") || strings.Count(text, "+goose") != 2 {
			t.Errorf("%s: must have the two goose lines first, and no others", name)
		}
		sql := strings.TrimSpace(withoutComments(text))
		if strings.Count(sql, ";") != 1 || !strings.HasSuffix(sql, ";") {
			t.Errorf("%s: must be one statement", name)
		}
		if !repeatable.MatchString(sql) {
			t.Errorf("%s: begins with %.30q, must be a statement that can be repeated: %s", name, sql, repeatable)
		}
	}
}

func withoutComments(sql string) string {
	var kept strings.Builder
	for line := range strings.Lines(sql) {
		if code, _, commented := strings.Cut(line, "-- "); commented {
			line = code + "\n"
		}
		kept.WriteString(strings.TrimPrefix(line, "--\n"))
	}
	return kept.String()
}

// A database that has applied a file never applies it again, so that a change to it would split databases into two kinds.
// There is no flag to renew the sums: a change belongs into a new file. `sha256sum -c` reads the same format.
func TestFilesAreNeverEditedOnceLanded(t *testing.T) {
	b, err := os.ReadFile("testdata/migrations.sum")
	if err != nil {
		t.Fatal(err)
	}
	var landed []string
	for line := range strings.Lines(string(b)) {
		landed = append(landed, strings.TrimSuffix(line, "\n"))
	}
	var now []string
	for _, name := range files() {
		now = append(now, fmt.Sprintf("%x  %s", sha256.Sum256([]byte(readMigration(t, name))), name))
	}
	for _, line := range landed {
		if !slices.Contains(now, line) {
			t.Errorf("%s: was edited, renamed or removed after it had landed; write a new migration instead", line[66:])
		}
	}
	for _, line := range now[min(len(landed), len(now)):] {
		t.Errorf("a new migration: append this line to testdata/migrations.sum\n%s", line)
	}
}
