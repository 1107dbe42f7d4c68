package outbox

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

var uuidV7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestEnqueueCommitsAndRollsBackWithTheCaller(t *testing.T) { // scenario 2
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		relay := newRelay(t, s.DB)
		for _, end := range []string{"commit", "rollback"} {
			t.Run(end, func(t *testing.T) {
				tx := begin(t, s.DB)
				if _, err := Enqueue(t.Context(), tx, message(end)); err != nil {
					t.Fatal(err)
				}
				if rows := relay.byID(t); len(rows[end].MessageID) > 0 {
					t.Error("an uncommitted message was read")
				}
				if err := map[string]func() error{"commit": tx.Commit, "rollback": tx.Rollback}[end](); err != nil {
					t.Fatal(err)
				}
				if _, found := relay.byID(t)[end]; found != (end == "commit") {
					t.Errorf("read after the %s: %v", end, found)
				}
			})
		}
	})
}

// A *sql.Conn in a transaction of its own is an Execer as well, and so is anything that wraps one.
func TestEnqueueOnAConn(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conn := testdb.Conn(t, s.DB, "START TRANSACTION")
		if _, err := Enqueue(t.Context(), conn, message("rolled-back")); err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, conn, "ROLLBACK")
		testdb.Exec(t, conn, "START TRANSACTION")
		if _, err := EnqueueMany(t.Context(), conn, []Message{message("a"), message("b")}); err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, conn, "COMMIT")
		if n := pending(t, s.DB); n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
	})
}

func TestEnqueueFillsDefaults(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		before := time.Now().UnixMilli()
		ids := enqueue(t, s.DB, Message{EventType: "welcome", Payload: map[string]any{"a": 1}},
			Message{EventType: "welcome", Payload: json0})
		row := newRelay(t, s.DB).byID(t)[ids[0]]
		if !uuidV7.MatchString(ids[0]) || ids[0] == ids[1] {
			t.Errorf("IDs %v are not two UUIDs of version 7", ids)
		}
		if ms, err := strconv.ParseInt(ids[0][:8]+ids[0][9:13], 16, 64); err != nil || ms < before || ms > time.Now().UnixMilli() {
			t.Errorf("ID %s is of %d, %v", ids[0], ms, err)
		}
		if string(row.Payload) != `{"a":1}` || row.Headers != nil || row.DeliverAt != "" || row.Priority != 3 || row.EventType != "welcome" {
			t.Errorf("row %+v", row)
		}
	})
}

func TestEnqueueManyKeepsOrder(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		var ms []Message
		var want []string
		for i := range MaxMessages {
			want = append(want, "m"+strconv.Itoa(i))
			ms = append(ms, Message{
				ID: want[i], EventType: "welcome", Payload: i, Priority: 1 + i%5,
				Headers: map[string]string{"n": strconv.Itoa(i)},
			})
		}
		if ids := enqueue(t, s.DB, ms...); !slices.Equal(ids, want) {
			t.Error("the IDs are not those of the messages in order")
		}
		rows := newRelay(t, s.DB).byID(t)
		for i, id := range want {
			row := rows[id]
			if string(row.Payload) != strconv.Itoa(i) || row.Priority != 1+i%5 || string(row.Headers) != `{"n":"`+strconv.Itoa(i)+`"}` {
				t.Errorf("%s: %+v", id, row)
			}
			if express := row.Shard >= FirstExpressShard; express != (row.Priority <= 2) {
				t.Errorf("%s: priority %d in shard %d", id, row.Priority, row.Shard)
			}
		}
	})
}

// One call is one statement and one round trip, however many messages it writes: no prepare, no SET, no second INSERT.
func TestEnqueueIsOneRoundTrip(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conn := testdb.Conn(t, s.DB)
		// commands counts every command of this session but the one that asks.
		commands := func() (n int) {
			t.Helper()
			var name string
			if err := conn.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		prepares := func() int {
			t.Helper()
			return statusOf(t, conn, "Com_stmt_prepare")
		}
		many := make([]Message, 100)
		for i := range many {
			many[i] = Message{EventType: "welcome", Payload: i, Headers: map[string]string{"a": "?"}, DeliverAt: time.Now()}
		}
		asking := commands()
		asking = commands() - asking
		for _, ms := range [][]Message{many[:1], many} {
			p := prepares()
			before := commands()
			if _, err := EnqueueMany(t.Context(), conn, ms); err != nil {
				t.Fatal(err)
			}
			if n := commands() - before - asking; n != 1 {
				t.Errorf("%d messages: %d commands, want 1", len(ms), n)
			}
			if n := prepares() - p; n != 0 {
				t.Errorf("%d messages: %d prepares, want none", len(ms), n)
			}
		}
	})
}

func statusOf(t *testing.T, conn *sql.Conn, variable string) (n int) {
	t.Helper()
	var name string
	if err := conn.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE '"+variable+"'").Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The caller's session is as it was: the time zone in particular, which the statement sets for itself.
func TestEnqueueLeavesTheSessionAlone(t *testing.T) {
	const state = "SELECT CONCAT_WS('|', @@time_zone, @@sql_mode, @@autocommit, @@character_set_client, @@character_set_results)"
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conn := testdb.Conn(t, s.DB, "SET time_zone = '+09:00', sql_mode = 'ANSI'")
		before := testdb.Value[string](t, conn, state)
		_, err := Enqueue(t.Context(), conn, Message{EventType: "welcome", Payload: json0, DeliverAt: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if after := testdb.Value[string](t, conn, state); after != before {
			t.Errorf("the session was %s, became %s", before, after)
		}
	})
}

func TestEnqueueHonoursTheContext(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Enqueue(ctx, testdb.Conn(t, s.DB), message("x")); err == nil {
			t.Error("no error")
		}
	})
}

func TestEnqueueManyOfNothing(t *testing.T) {
	if ids, err := EnqueueMany(t.Context(), refuse{t}, nil); len(ids) != 0 || err != nil {
		t.Errorf("%v, %v", ids, err)
	}
}

// refuse is an Execer to which nothing may be sent.
type refuse struct{ t *testing.T }

func (r refuse) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	r.t.Helper()
	r.t.Errorf("sent: %.200s", query)
	return nil, sql.ErrConnDone
}
