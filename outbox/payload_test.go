package outbox

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// Bytes are stored and read as they are: no number is rounded, no key reordered, no space lost, whatever the session's
// sql_mode and character set. (scenarios 11, 15)
func TestPayloadIsKeptByteForByte(t *testing.T) {
	payloads := map[string]string{
		"key order and space": "{ \"z\" : 1,\n\t\"a\":2 }  \n",
		"snowflakes":          `{"id":9007199254740993,"other":3544790567247868102,"exact":1.10,"e":1e2}`,
		"quotes":              `{"a":"it's \"quoted\" \\ ? %s _utf8mb4 -- /* */ ;"}`,
		"case":                `{"a":1,"A":3}`,
		"escapes":             `{"a":"\u0000\u00e9\/\ud83d\ude00"}`,
		"characters":          `{"a":"é 한국어 ` + "\U0001f469\u200d\U0001f469" + `"}`,
		"html":                `{"a":"<b>&amp;</b>"}`,
		"a number":            `9007199254740993`,
		"null":                `null`,
		"65,535 bytes":        `"` + strings.Repeat("a", 65_533) + `"`,
		"65,536 bytes":        `"` + strings.Repeat("a", 65_534) + `"`,
		"1,048,576 bytes":     `"` + strings.Repeat("é", 524_287) + `"`,
	}
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		relay := newRelay(t, s.DB)
		for name, set := range map[string]string{
			"default": "SET @unused = 1", "ANSI": "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "latin1": "SET NAMES latin1",
		} {
			conn := testdb.Conn(t, s.DB, set)
			for what, payload := range payloads {
				t.Run(name+"/"+what, func(t *testing.T) {
					for _, p := range []any{[]byte(payload), json.RawMessage(payload)} {
						if _, err := Enqueue(t.Context(), conn, Message{EventType: "welcome", Payload: p}); err != nil {
							t.Fatal(err)
						}
						checkPayload(t, relay, payload)
						testdb.Exec(t, conn, "DELETE FROM outbox_messages WHERE message_id < '~'")
					}
				})
			}
		}
	})
}

// checkPayload reads the only message, and loads it where it is large.
func checkPayload(t *testing.T, r relay, want string) {
	t.Helper()
	rows := r.all(t)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	row := &rows[0]
	if row.Large() != (len(want) > InlineSize) || row.Size != len(want) {
		t.Errorf("%d bytes: large=%v, size=%d", len(want), row.Large(), row.Size)
	}
	if row.Large() {
		if err := (Table{}).Load(t.Context(), r.conn, row); err != nil {
			t.Fatal(err)
		}
	}
	if string(row.Payload) != want {
		t.Errorf("payload %.100q, want %.100q", row.Payload, want)
	}
}

func TestPayloadIsMarshalled(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		type payload struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		}
		enqueue(t, s.DB, Message{EventType: "welcome", Payload: payload{9007199254740993, "é"}})
		checkPayload(t, newRelay(t, s.DB), `{"id":9007199254740993,"name":"é"}`)
	})
}
