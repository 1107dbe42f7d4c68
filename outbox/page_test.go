package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// idsIn makes n IDs of one shard, in order.
func idsIn(shard uint8, n int) []string {
	var ids []string
	for i := 0; len(ids) < n; i++ {
		id := "m" + strconv.Itoa(100_000+i)
		if shardOf(id) == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

// A page reads each shard on from its position, in the order of the positions and then of the IDs.
func TestPageOrder(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		three, five := idsIn(3, 4), idsIn(5, 3)
		for _, id := range append(slices.Clone(three), five...) {
			enqueue(t, s.DB, message(id))
		}
		express := message(three[0] + "-x")
		express.Priority = 1
		enqueue(t, s.DB, express)
		expressShard := shardOf(express.ID) + FirstExpressShard
		r := newRelay(t, s.DB)
		for _, c := range []struct {
			name      string
			positions []Position
			want      []string
		}{
			{"no shard", nil, nil},
			{"from the head", []Position{{3, "", 10}, {5, "", 10}}, append(slices.Clone(three), five...)},
			{"in the order of the positions", []Position{{5, "", 10}, {3, "", 10}}, append(slices.Clone(five), three...)},
			{"behind an ID", []Position{{3, three[1], 10}, {5, five[2], 10}}, three[2:]},
			{"up to a limit", []Position{{3, "", 2}, {5, five[0], 1}}, []string{three[0], three[1], five[1]}},
			{"behind an ID that is not there", []Position{{3, three[0] + "0", 1}}, three[1:2]},
			{"the express lane", []Position{{expressShard, "", 10}, {5, "", 1}}, []string{express.ID, five[0]}},
		} {
			t.Run(c.name, func(t *testing.T) {
				page, err := r.Page(t.Context(), Glance{}, c.positions...)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, row := range page.Rows {
					got = append(got, row.MessageID)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("IDs %v, want %v", got, c.want)
				}
				if page.Server.ID == "" || page.Server.ReadOnly {
					t.Errorf("server %+v", page.Server)
				}
			})
		}
	})
}

// Empty shards and full ones: a sentinel is never read, counted or deleted, even by its own key.
func TestSentinelsAreNeverSeen(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		r := newRelay(t, s.DB)
		if rows := r.all(t); len(rows) != 0 {
			t.Errorf("an empty table has rows: %v", rows)
		}
		if n := pending(t, s.DB); n != 0 {
			t.Errorf("%d pending in an empty table", n)
		}
		var keys []Key
		for shard := range uint8(Shards) {
			id := fmt.Sprintf("~%02d", shard)
			created := testdb.Value[string](t, r.conn, "SELECT created_at FROM outbox_messages WHERE message_id = ?", id)
			keys = append(keys, Key{Shard: shard, MessageID: id, CreatedAt: created})
		}
		if deleted, err := r.Delete(t.Context(), keys); err != nil || len(deleted.Locked) != 0 {
			t.Errorf("delete: %+v, %v", deleted, err)
		}
		if moved, err := r.MoveToFailed(t.Context(), keys[3], ReasonNeverStarts, ""); moved || err != nil {
			t.Errorf("moved=%v, %v", moved, err)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages"); n != Shards {
			t.Errorf("%d sentinels left", n)
		}
		enqueue(t, s.DB, message("}}}}")) // the last ID there can be, almost
		if rows := r.all(t); len(rows) != 1 {
			t.Errorf("rows %v", rows)
		}
		if n := pending(t, s.DB); n != 1 {
			t.Errorf("%d pending, want 1", n)
		}
	})
}

func TestPendingStopsAtItsLimit(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		ms := make([]Message, 20)
		for i := range ms {
			ms[i] = Message{EventType: "welcome", Payload: i}
		}
		enqueue(t, s.DB, ms...)
		for limit, want := range map[int]int{1: 1, 19: 19, 20: 20, 1000: 20} {
			if n, err := (Table{}).Pending(t.Context(), s.DB, limit); n != want || err != nil {
				t.Errorf("limit %d: %d, %v; want %d", limit, n, err, want)
			}
		}
	})
}

// A read takes no lock and waits for none, and sees only what is committed. (scenarios 1, 2)
func TestPageSeesCommittedRowsOnly(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, message("committed"), message("deleted"))
		r := newRelay(t, s.DB)
		tx := begin(t, s.DB)
		if _, err := Enqueue(t.Context(), tx, message("open")); err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, tx, "DELETE FROM outbox_messages WHERE message_id = 'deleted'")
		if rows := r.byID(t); len(rows) != 2 || rows["open"].MessageID != "" {
			t.Errorf("during the transaction: %v", rows)
		}
		if locks := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = ?",
			testdb.Value[int](t, r.conn, "SELECT CONNECTION_ID()")); locks != 0 {
			t.Error("the reader has an open transaction")
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if rows := r.byID(t); len(rows) != 2 || rows["open"].MessageID != "" {
			t.Errorf("after the rollback: %v", rows)
		}
		late := begin(t, s.DB)
		if _, err := Enqueue(t.Context(), late, message("late")); err != nil {
			t.Fatal(err)
		}
		enqueue(t, s.DB, message("after"))
		commit(t, late)
		if rows := r.byID(t); rows["late"].MessageID == "" || rows["after"].MessageID == "" {
			t.Errorf("after a late commit: %v", rows)
		}
	})
}

// A row over InlineSize comes without its payload, so that a page has bounded memory; Load gets it. (scenario 40)
func TestLargeRows(t *testing.T) {
	fits := `"` + strings.Repeat("a", InlineSize-2) + `"`
	over := `"` + strings.Repeat("a", InlineSize-1) + `"`
	headers := map[string]string{"tenant": "t1"}
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, Message{ID: "fits", EventType: "welcome", Payload: []byte(fits)},
			Message{ID: "over", EventType: "welcome", Payload: []byte(over)},
			Message{ID: "together", EventType: "welcome", Payload: []byte(fits), Headers: headers},
			Message{ID: "small", EventType: "welcome", Payload: json0, Headers: headers})
		r := newRelay(t, s.DB)
		rows := r.byID(t)
		for id, want := range map[string]struct {
			large            bool
			payload, headers string
		}{
			"fits": {false, fits, ""}, "over": {true, over, ""},
			"together": {true, fits, `{"tenant":"t1"}`}, "small": {false, "{}", `{"tenant":"t1"}`},
		} {
			row := rows[id]
			if row.Large() != want.large || row.Size != len(want.payload)+len(want.headers) {
				t.Errorf("%s: large=%v size=%d", id, row.Large(), row.Size)
			}
			if row.Large() && row.Headers != nil {
				t.Errorf("%s came with its headers", id)
			}
			if err := (Table{}).Load(t.Context(), s.DB, &row); err != nil {
				t.Fatal(err)
			}
			if string(row.Payload) != want.payload || string(row.Headers) != want.headers {
				t.Errorf("%s: %d bytes, headers %s", id, len(row.Payload), row.Headers)
			}
		}
		gone := rows["over"]
		testdb.Exec(t, s.DB, "UPDATE outbox_messages SET created_at = created_at + INTERVAL 1 SECOND WHERE message_id = 'over'")
		if err := (Table{}).Load(t.Context(), s.DB, &gone); !errors.Is(err, ErrGone) {
			t.Errorf("enqueued again: %v, want ErrGone", err)
		}
		testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id = 'over'")
		if err := (Table{}).Load(t.Context(), s.DB, &gone); !errors.Is(err, ErrGone) {
			t.Errorf("deleted: %v, want ErrGone", err)
		}
	})
}

func TestPrepareMakesTheSession(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conn := testdb.Conn(t, s.DB, "SET NAMES latin1", "SET time_zone = '+09:00', sql_mode = '', autocommit = 0")
		kind, err := Prepare(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]Kind{"mysql": MySQL, "mariadb": MariaDB}[string(s.Flavour)]; kind != want {
			t.Errorf("kind %d, want %d", kind, want)
		}
		isolation := map[Kind]string{MySQL: "@@transaction_isolation", MariaDB: "@@tx_isolation"}[kind]
		got := testdb.Value[string](t, conn, "SELECT CONCAT_WS('|', @@time_zone, @@sql_mode, @@autocommit + 0, @@character_set_client, "+
			"@@character_set_results, "+isolation+")")
		if want := "+00:00|STRICT_ALL_TABLES|1|utf8mb4|utf8mb4|READ-COMMITTED"; got != want {
			t.Errorf("session %s, want %s", got, want)
		}
	})
}

// A demoted primary still answers reads: every answer says so, and a delete does not try. (scenario 39)
func TestReadOnlyServerIsSeen(t *testing.T) {
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f))
			migrateUp(t, s.DB)
			enqueue(t, s.DB, message("a"))
			r := newRelay(t, s.DB)
			keys := r.keys(t)
			testdb.Exec(t, s.DB, "SET GLOBAL read_only = 1")
			page, err := r.Page(t.Context(), Glance{}, Position{Shard: keys[0].Shard, Limit: 1})
			if err != nil || !page.Server.ReadOnly || len(page.Rows) != 1 {
				t.Errorf("page %+v, %v", page, err)
			}
			deleted, err := r.Delete(t.Context(), keys)
			if err != nil || !deleted.Server.ReadOnly || len(deleted.Locked) != 0 {
				t.Errorf("delete %+v, %v", deleted, err)
			}
			if n := pending(t, s.DB); n != 1 {
				t.Errorf("%d messages, want the one", n)
			}
			state, err := r.Deleter.kind.State(t.Context(), r.conn)
			if err != nil || state != page.Server || state != deleted.Server {
				t.Errorf("state %+v, page %+v, delete %+v: %v", state, page.Server, deleted.Server, err)
			}
			testdb.Exec(t, s.DB, "SET GLOBAL read_only = 0")
			if deleted, err = r.Delete(t.Context(), keys); err != nil || deleted.Server.ReadOnly || pending(t, s.DB) != 0 {
				t.Errorf("delete on a writable server %+v, %v", deleted, err)
			}
		})
	}
}

func TestPageHonoursTheContext(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		r := newRelay(t, s.DB)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Page(ctx, Glance{}, Position{Limit: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}
