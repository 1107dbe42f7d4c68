package migrate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

var sqlBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")

// sqlOf returns a page's SQL blocks.
func sqlOf(t *testing.T, page string) []string {
	t.Helper()
	b, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range sqlBlock.FindAllStringSubmatch(string(b), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func TestProducingPage(t *testing.T) {
	blocks := sqlOf(t, "producing.md")
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		client := testdb.Open(t, s.DSN+"?multiStatements=true")
		for _, block := range blocks {
			testdb.Exec(t, client, block)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != len(blocks) {
			t.Errorf("%d messages of %d statements", n, len(blocks))
		}
	})
}

// The page names every constraint of the table, and no other.
func TestProducingPageNamesTheConstraints(t *testing.T) {
	b, err := os.ReadFile("../../docs/producing.md")
	if err != nil {
		t.Fatal(err)
	}
	var page []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(outbox_[a-z0-9_]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		page = append(page, m[1])
	}
	var table []string
	for _, m := range regexp.MustCompile(`CONSTRAINT (\w+) CHECK`).FindAllStringSubmatch(readMigration(t, files()[0]), -1) {
		table = append(table, m[1])
	}
	slices.Sort(page)
	slices.Sort(table)
	if !slices.Equal(page, table) {
		t.Errorf("the page has %v, the table %v", page, table)
	}
}

// The page's numbers of nesting.
func TestProducingPageDepths(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		deepest := map[string]int{"mysql": 100, "mariadb": 31}[string(s.Flavour)]
		for depth, good := range map[int]bool{deepest: true, deepest + 1: false} {
			_, err := s.DB.ExecContext(t.Context(), "INSERT INTO outbox_messages (event_type, payload) VALUES ('x', ?)",
				strings.Repeat("[", depth)+strings.Repeat("]", depth))
			if (err == nil) != good {
				t.Errorf("%d levels: %v", depth, err)
			}
		}
	})
}

// The statements of the page, from an old outbox to an emptied one.
func TestMovingPage(t *testing.T) {
	blocks := sqlOf(t, "moving.md")
	testdb.Each(t, func(t *testing.T, app *testdb.Schema) {
		own := testdb.NewSchema(t, app.Flavour)
		names := strings.NewReplacer(" app.", " "+app.Name+".", " oncepost.", " "+own.Name+".")
		client := testdb.Open(t, app.DSN+"?multiStatements=true")
		for _, block := range blocks {
			if strings.HasPrefix(block, "CREATE DATABASE") {
				up(t, own.DB)
				continue
			}
			testdb.Exec(t, client, names.Replace(block))
		}
		got := testdb.Column[string](t, own.DB, "SELECT CONCAT(message_id, ' ', event_type) FROM outbox_messages WHERE message_id < '~'")
		if !slices.Equal(got, []string{"old:2 welcome"}) {
			t.Errorf("moved %v", got)
		}
		left := testdb.Column[string](t, app.DB, "SELECT status FROM old_outbox_messages ORDER BY id")
		if !slices.Equal(left, []string{"SENT", "MOVED", "PROCESSING"}) {
			t.Errorf("left %v", left)
		}
	})
}
