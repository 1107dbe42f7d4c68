package outbox

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncepost/oncepost/internal/testdb"
)

// runes are those at the edges of what the contract allows, and what servers are known to fold, pad or cut.
var runes = rapid.OneOf(
	rapid.RuneFrom([]rune("aZ09_.-:!\"'\\`}|{@/~? \t\n\r\x00\x1f\x7f\u0080éßİ\u200b\U0001f469")),
	rapid.Rune(),
	rapid.Map(rapid.IntRange(0x20, 0x7f), func(i int) rune { return rune(i) }),
)

// The package and the table draw the same lines: what one takes the other takes. The package is asked through its own
// check, the table by plain SQL, under a strict mode and under none.
func TestPackageAndTableAgree(t *testing.T) {
	for _, mode := range []string{"STRICT_ALL_TABLES", ""} {
		eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
			conn := testdb.Conn(t, s.DB, "SET sql_mode = '"+mode+"'")
			const insert = "INSERT INTO outbox_messages (message_id, event_type, payload) VALUES (?, ?, '{}')"
			table := func(id, eventType string) error {
				tx, err := conn.BeginTx(context.Background(), nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = tx.ExecContext(context.Background(), insert, id, eventType)
				if rerr := tx.Rollback(); rerr != nil {
					t.Fatal(rerr)
				}
				return err
			}
			agree := func(t *rapid.T, id, eventType string) {
				_, mine := prepare(Message{ID: id, EventType: eventType, Payload: json0})
				var invalid *InvalidError
				if mine != nil && !errors.As(mine, &invalid) {
					t.Fatalf("not an InvalidError: %v", mine)
				}
				if theirs := table(id, eventType); (mine == nil) != (theirs == nil) {
					t.Fatalf("ID %q, type %q: the package says %v, the table %v", id, eventType, mine, theirs)
				}
			}
			rapid.Check(t, func(t *rapid.T) { // an empty ID stands for the default
				agree(t, rapid.StringOfN(runes, 1, 140, -1).Draw(t, "id"), "welcome")
			})
			rapid.Check(t, func(t *rapid.T) {
				agree(t, "id", rapid.StringOfN(runes, 0, 70, -1).Draw(t, "type"))
			})
			rapid.Check(t, func(t *rapid.T) { // mostly good ones, about as long as may be
				good := rapid.Map(rapid.IntRange(0x21, 0x7d), func(i int) rune { return rune(i) })
				agree(t, rapid.StringOfN(good, 100, 130, -1).Draw(t, "id"), "welcome")
			})
		})
	}
}

// Every single byte, in both columns: none is left to chance.
func TestPackageAndTableAgreeOnEveryCharacter(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for c := range rune(0x100) {
			for _, m := range []Message{
				{ID: string(c), EventType: "welcome", Payload: json0},
				{ID: "a" + string(c), EventType: "welcome", Payload: json0},
				{ID: "id", EventType: string(c), Payload: json0},
				{ID: "id", EventType: "a" + string(c), Payload: json0},
			} {
				_, mine := prepare(m)
				tx := begin(t, s.DB)
				_, theirs := tx.ExecContext(t.Context(),
					"INSERT INTO outbox_messages (message_id, event_type, payload) VALUES (?, ?, '{}')", m.ID, m.EventType)
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if (mine == nil) != (theirs == nil) {
					t.Errorf("ID %q, type %q: the package says %v, the table %v", m.ID, m.EventType, mine, theirs)
				}
			}
		}
	})
}

// lenient is what the JSON_VALID of one server lets through although it is no JSON. Such a payload, which only another producer
// can write, fails its workflow.
var lenient = map[string]string{"1\x00": "mysql", `"\x41"`: "mariadb", `1.`: "mariadb"}

// JSON at the edges: what the package accepts the table accepts, and what is no JSON both refuse.
func TestPackageAndTableAgreeOnJSON(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		deepest := map[string]int{"mysql": 100, "mariadb": 31}[string(s.Flavour)]
		for payload, good := range map[string]bool{
			`"\ud800"`: false, `"\udc00\ud800"`: false, `"\ud83d\ude00"`: true, `"\u0000"`: true, `-0`: true, `1E+2`: true, `1e-7`: true, `0.10`: true, `" "`: true,
			"\"\u2028\"": true, "\"\x7f\"": true, `""`: true, `{"":1}`: true, " \t\r\n1 ": true, nested(deepest): true,
			`123456789012345678901234567890`: true, `1e300`: true, `0.1234567890123456789012345678901`: true,
			nested(101): false, `01`: false, `+1`: false, `.5`: false, `1.`: false, `1e`: false, `NaN`: false, `True`: false, `[1,]`: false, `{"a":1,}`: false, `[1 2]`: false,
			`{"a"}`: false, `{1:1}`: false, `/**/1`: false, `1//`: false, "\"\t\"": false, "\"\x00\"": false, `"\x41"`: false, `"\u00g0"`: false, "\ufeff1": false, "\u00a01": false,
			"1\x00": false, "1\u2028": false, "1\v": false,
		} {
			_, mine := prepare(Message{EventType: "welcome", Payload: []byte(payload)})
			_, theirs := s.DB.ExecContext(t.Context(), "INSERT INTO outbox_messages (event_type, payload) VALUES ('x', ?)", payload)
			let := good || lenient[payload] == string(s.Flavour)
			if (mine == nil) != good || (theirs == nil) != let {
				t.Errorf("%.60q: the package says %v, the table %v", payload, mine, theirs)
			}
		}
	})
}
