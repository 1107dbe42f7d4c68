package migrate

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// edges are the characters where an encoding changes its length, and texts that case folding or normalising would change.
// U+0000 cannot stand in JSON unescaped.
const edges = `{"text":"` + "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \u0130 \u00df e\u0301" +
	`\u0000` + "\u007f\u0080\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff" + `"}`

// Servers and connections that have another character set by default must not change a byte. (scenario 10)
func TestRowPayloadIsKeptOnALatin1Server(t *testing.T) {
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			server := testdb.OwnServer(t, f, "--character-set-server=latin1", "--collation-server=latin1_swedish_ci")
			s := testdb.NewSchemaOn(t, server)
			client := testdb.Open(t, s.DSN+"?charset=latin1")
			if got := testdb.Value[string](t, client, "SELECT @@character_set_client"); got != "latin1" {
				t.Fatalf("the connection's character set is %s", got)
			}
			up(t, client)
			enqueueEdges(t, client, "from-latin1")
			enqueueEdges(t, s.DB, "from-utf8mb4")
			testdb.Exec(t, s.DB, "INSERT INTO outbox_messages (message_id, event_type, payload) VALUES ('plain', 'welcome', ?)", edges)
			for _, dsn := range []string{s.DSN, s.DSN + "?charset=latin1"} {
				db, err := mysqldb.Open(mysqldb.Config{DSN: dsn})
				if err != nil {
					t.Fatal(err)
				}
				readEdges(t, db)
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
			readEdges(t, client) // a pool that mysqldb did not open
			// latin1 has an é, and the column must refuse it all the same.
			_, err := client.ExecContext(t.Context(), "SET sql_mode = ''")
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.ExecContext(t.Context(), "INSERT INTO outbox_messages (message_id, event_type, payload) VALUES ('caf\xe9', 'x', '{}')")
			if err == nil || !strings.Contains(err.Error(), badID) {
				t.Errorf("an ID with a latin1 é: %v", err)
			}
		})
	}
}

func enqueueEdges(t *testing.T, db *sql.DB, id string) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = outbox.Enqueue(t.Context(), tx, outbox.Message{
		ID: id, EventType: "welcome", Payload: []byte(edges), Headers: map[string]string{"tenant": "\u00df\U0001f469"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func readEdges(t *testing.T, db *sql.DB) {
	t.Helper()
	conn := testdb.Conn(t, db)
	kind, err := outbox.Prepare(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	var positions []outbox.Position
	for shard := range outbox.Shards {
		positions = append(positions, outbox.Position{Shard: uint8(shard), Limit: 10})
	}
	page, err := outbox.Table{}.NewReader(conn, kind).Page(t.Context(), outbox.Glance{}, positions...)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Rows) != 3 {
		t.Fatalf("%d rows, want 3", len(page.Rows))
	}
	for _, row := range page.Rows {
		if string(row.Payload) != edges {
			t.Errorf("%s: payload %+q, want %+q", row.MessageID, row.Payload, edges)
		}
		if want := `{"tenant":"ß` + "\U0001f469" + `"}`; row.MessageID != "plain" && string(row.Headers) != want {
			t.Errorf("%s: headers %+q, want %+q", row.MessageID, row.Headers, want)
		}
	}
}
