package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

const (
	badID        = "outbox_message_id_is_1_to_128_of_0x21_to_0x7d_no_question_mark"
	badType      = "outbox_event_type_is_1_to_64_letters_digits_dots_dashes"
	badJSON      = "outbox_payload_is_json"
	badSize      = "outbox_payload_is_at_most_1_mib"
	badHeaders   = "outbox_headers_are_a_json_object"
	largeHeaders = "outbox_headers_are_at_most_8_kib"
	badDeliverAt = "outbox_deliver_at_is_a_time"
	badPriority  = "outbox_priority_is_1_to_5"
	badShard     = "outbox_shard_is_filled_by_the_database"
)

// badRow is a row with one column that breaks the contract.
type badRow struct {
	name, column, value string // value as SQL
	constraint          string // named in the error under sql_mode=''
	// strict is what the error names in strict mode: the column, where the server refuses the value before any CHECK.
	// Default: the constraint.
	strict string
}

var badRows = []badRow{
	{"ID of 129 characters", "message_id", "REPEAT('a', 129)", badID, ""},
	{"ID of 160 characters", "message_id", "REPEAT('a', 160)", badID, ""},
	{"ID of 300 characters", "message_id", "REPEAT('a', 300)", badID, "message_id"},
	{"ID with é", "message_id", "'caf\u00e9'", badID, "message_id"},
	{"ID with è", "message_id", "'caf\u00e8'", badID, "message_id"},
	{"ID with an emoji", "message_id", "'caf\U0001f469'", badID, "message_id"},
	{"ID with a line break", "message_id", "'a\\nb'", badID, ""},
	{"ID that ends in a line break", "message_id", "'a\\n'", badID, ""},
	{"ID with NUL", "message_id", "'a\\0b'", badID, ""},
	{"ID with DEL", "message_id", "CONCAT('a', CHAR(127 USING ascii))", badID, ""},
	{"ID with a space", "message_id", "'a b'", badID, ""},
	{"ID that ends in a space", "message_id", "'a '", badID, ""},
	{"ID with ?", "message_id", "'a?b'", badID, ""},
	{"ID with ~ in front", "message_id", "'~a'", badID, ""},
	{"ID with ~ inside", "message_id", "'a~'", badID, ""},
	{"ID like a sentinel of another width", "message_id", "'~5'", badID, ""},
	{"ID like a sentinel that does not exist", "message_id", "'~32'", badID, ""},
	{"empty ID", "message_id", "''", badID, ""},
	{"event type of 65 characters", "event_type", "REPEAT('a', 65)", badType, ""},
	{"event type of 200 characters", "event_type", "REPEAT('a', 200)", badType, "event_type"},
	{"event type with a space", "event_type", "'wel come'", badType, ""},
	{"event type that ends in a line break", "event_type", "'welcome\\n'", badType, ""},
	{"event type with é", "event_type", "'caf\u00e9'", badType, "event_type"},
	{"event type with a colon", "event_type", "'a:b'", badType, ""},
	{"empty event type", "event_type", "''", badType, ""},
	{"no JSON", "payload", "'hello'", badJSON, ""},
	{"JSON cut short", "payload", `'{"a":1'`, badJSON, ""},
	{"two JSON values", "payload", `'{} {}'`, badJSON, ""},
	{"single quotes", "payload", `"{'a':1}"`, badJSON, ""},
	{"empty payload", "payload", "''", badJSON, ""},
	{"payload of 1,048,577 bytes", "payload", `CONCAT('"', REPEAT('a', 1048575), '"')`, badSize, ""},
	{"payload of 1,048,577 bytes, few characters", "payload", `CONCAT('"', REPEAT('` + "\U0001f469" + `', 262143), 'abc"')`, badSize, ""},
	{"payload of 3 MB", "payload", `CONCAT('"', REPEAT('a', 3000000), '"')`, badSize, ""},
	{"headers that are an array", "headers", "'[1]'", badHeaders, ""},
	{"headers that are a string", "headers", `'"a"'`, badHeaders, ""},
	{"headers that are null", "headers", "'null'", badHeaders, ""},
	{"headers that are no JSON", "headers", "'tenant=1'", badHeaders, ""},
	{"headers of 8,193 bytes", "headers", `CONCAT('{"a":"', REPEAT('a', 8185), '"}')`, largeHeaders, ""},
	{"headers of 60,000 bytes", "headers", `CONCAT('{"a":"', REPEAT('a', 59992), '"}')`, largeHeaders, ""},
	{"deliver_at 'tomorrow'", "deliver_at", "'tomorrow'", badDeliverAt, "deliver_at"},
	{"deliver_at 2026-02-31", "deliver_at", "'2026-02-31'", badDeliverAt, "deliver_at"},
	{"deliver_at of zeroes", "deliver_at", "'0000-00-00 00:00:00'", badDeliverAt, "deliver_at"},
	{"deliver_at in 1960", "deliver_at", "'1960-01-01'", badDeliverAt, "deliver_at"},
	{"deliver_at ''", "deliver_at", "''", badDeliverAt, "deliver_at"},
	{"priority 0", "priority", "0", badPriority, ""},
	{"priority 6", "priority", "6", badPriority, ""},
	{"priority -1", "priority", "-1", badPriority, ""},
	{"priority 300", "priority", "300", badPriority, "priority"},
	{"priority 'high'", "priority", "'high'", badPriority, "priority"},
	{"another shard", "shard", "MOD(CRC32('fixed') MOD 16 + 1, 16)", badShard, ""},
	{"the express shard", "shard", "CRC32('fixed') MOD 16 + 16", badShard, ""},
	{"shard 255", "shard", "255", badShard, ""},
}

// insert is the row in SQL.
func (r badRow) insert(kind string) string {
	set := map[string]string{"message_id": "'fixed'", "event_type": "'welcome'", "payload": "'{}'"}
	if r.column == "message_id" {
		delete(set, "message_id")
	}
	set[r.column] = r.value
	columns := slices.Sorted(maps.Keys(set))
	var values []string
	for _, c := range columns {
		values = append(values, set[c])
	}
	return kind + " INTO outbox_messages (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

func TestRowRefusedWithAName(t *testing.T) { // scenarios 11, 16, 35
	modes := []struct {
		name, set string
		strict    bool
	}{
		{"default mode", "SET @unused = 1", true},
		{"STRICT_ALL_TABLES", "SET sql_mode = 'STRICT_ALL_TABLES'", true},
		{"no mode", "SET sql_mode = ''", false},
	}
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, mode := range modes {
			conn := testdb.Conn(t, s.DB, mode.set)
			for _, row := range badRows {
				t.Run(mode.name+"/"+row.name, func(t *testing.T) {
					want := row.constraint
					if mode.strict && row.strict != "" {
						want = row.strict
					}
					_, err := conn.ExecContext(t.Context(), row.insert("INSERT"))
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want one that names %s", err, want)
					}
				})
			}
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != 0 {
			t.Errorf("%d bad rows are in the table", n)
		}
	})
}

// Without a strict mode a NULL in a statement of several rows becomes the type's zero, which no CHECK lets pass.
func TestRowNullIsRefused(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conn := testdb.Conn(t, s.DB, "SET sql_mode = ''")
		for column, constraint := range map[string]string{
			"message_id": badID, "event_type": badType, "payload": badJSON, "priority": badPriority,
		} {
			row := badRow{column: column, value: "NULL"}
			for _, values := range []string{"", ", ('x', 'x', 'x')"} {
				query := row.insert("INSERT")
				want := column
				if values != "" {
					query = strings.Replace(query, "VALUES (", "VALUES "+good(column)+", (", 1)
					want = constraint
				}
				_, err := conn.ExecContext(t.Context(), query)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %v, want one that names %s", query, err, want)
				}
			}
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != 0 {
			t.Errorf("%d rows are in the table", n)
		}
	})
}

// good is a good row for the columns that badRow.insert names.
func good(column string) string {
	switch column {
	case "message_id":
		return "('welcome', 'first', '{}')"
	case "priority":
		return "('welcome', 'first', '{}', 3)"
	}
	return "('welcome', 'first', '{}')"
}

// INSERT IGNORE turns a refusal into a warning and drops the row: docs/producing.md warns of it, and no bad row gets in.
func TestRowInsertIgnoreLetsNothingBadIn(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, row := range badRows {
			if _, err := s.DB.ExecContext(t.Context(), row.insert("INSERT IGNORE")); err != nil {
				t.Logf("%s: %v", row.name, err)
			}
		}
		got := testdb.Column[string](t, s.DB, "SELECT CONCAT(message_id, ' ', event_type) FROM outbox_messages WHERE message_id < '~'")
		if len(got) != 0 {
			t.Errorf("bad rows are in the table: %q", got)
		}
	})
}

func TestRowLimitsAreInclusive(t *testing.T) { // scenario 11
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, row := range []badRow{
			{"ID of 1", "message_id", "'!'", "", ""},
			{"ID of 128", "message_id", "REPEAT('}', 128)", "", ""},
			{"ID of all characters", "message_id", `'!"#$%&''()*+,-./09:;<=>@AZ[\\]^_` + "`" + `az{|}'`, "", ""},
			{"event type of 64", "event_type", "REPEAT('Z', 64)", "", ""},
			{"event type of all", "event_type", "'A-Z.a_z-09'", "", ""},
			{"payload of 65,535 bytes", "payload", `CONCAT('"', REPEAT('a', 65533), '"')`, "", ""},
			{"payload of 65,536 bytes", "payload", `CONCAT('"', REPEAT('a', 65534), '"')`, "", ""},
			{"payload of 1,048,576 bytes", "payload", `CONCAT('"', REPEAT('a', 1048574), '"')`, "", ""},
			{"payload that is a number", "payload", `'9007199254740993'`, "", ""},
			{"headers of 8,192 bytes", "headers", `CONCAT('{"a":"', REPEAT('a', 8184), '"}')`, "", ""},
			{"deliver_at in the past", "deliver_at", "'1970-01-02'", "", ""},
			{"priority 1", "priority", "1", "", ""},
			{"priority 5", "priority", "5", "", ""},
			{"the right shard", "shard", "CRC32('fixed') MOD 16", "", ""},
		} {
			t.Run(row.name, func(t *testing.T) {
				testdb.Exec(t, s.DB, row.insert("INSERT"))
				kept := "SELECT " + row.column + " = " + row.value + " FROM outbox_messages WHERE message_id < '~'"
				if !testdb.Value[bool](t, s.DB, kept) {
					t.Error("the value was changed")
				}
				testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id < '~'")
			})
		}
	})
}
