package migrate

import (
	"database/sql"
	"hash/crc32"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

const plainInsert = `INSERT INTO outbox_messages (event_type, payload) VALUES ('welcome', '{"company_id":"c_42"}')`

var uuidV7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestRowPlainInsertIsEnough(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, plainInsert)
		var id, eventType, payload string
		var headers, deliverAt sql.NullString
		var priority, shard, age int
		err := s.DB.QueryRowContext(t.Context(), `SELECT message_id, event_type, payload, headers, deliver_at, priority, shard,
 TIMESTAMPDIFF(SECOND, created_at, NOW(6)) FROM outbox_messages WHERE message_id < '~'`).
			Scan(&id, &eventType, &payload, &headers, &deliverAt, &priority, &shard, &age)
		if err != nil {
			t.Fatal(err)
		}
		if eventType != "welcome" || payload != `{"company_id":"c_42"}` || headers.Valid || deliverAt.Valid || priority != 3 {
			t.Errorf("stored %q %q %v %v %d", eventType, payload, headers, deliverAt, priority)
		}
		if !uuidV7.MatchString(id) {
			t.Errorf("ID %q is not a UUID version 7", id)
		}
		if want := int(crc32.ChecksumIEEE([]byte(id)) % 16); shard != want {
			t.Errorf("shard %d, want %d", shard, want)
		}
		if age < 0 || age > 60 {
			t.Errorf("created_at is %d s old", age)
		}
	})
}

// The first 48 bits of a default ID are the database's milliseconds, so that IDs sort by time.
func TestRowDefaultIDsAreTimeOrdered(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		conn := testdb.Conn(t, s.DB)
		var want []int64
		for _, at := range []float64{1, 65.535, 65.536, 1_700_000_000.999, 1_700_000_001, 1_793_000_000.123, 2_147_483_646.5} {
			want = append(want, int64(math.Round(at*1000)))
			testdb.Exec(t, conn, "SET timestamp = "+strconv.FormatFloat(at, 'f', 3, 64))
			testdb.Exec(t, conn, plainInsert)
		}
		var got []int64
		for _, id := range testdb.Column[string](t, conn, "SELECT message_id FROM outbox_messages WHERE message_id < '~' ORDER BY message_id") {
			if !uuidV7.MatchString(id) {
				t.Errorf("ID %q is not a UUID version 7", id)
			}
			ms, err := strconv.ParseInt(strings.ReplaceAll(id, "-", "")[:12], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ms)
		}
		if !slices.Equal(got, want) {
			t.Errorf("milliseconds in order of ID: %v, want %v", got, want)
		}
	})
}

// Rows of one statement get IDs of their own although they share its time.
func TestRowDefaultIDsDiffer(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "INSERT INTO outbox_messages (event_type, payload) VALUES "+
			strings.Repeat("('welcome', '{}'),", 999)+"('welcome', '{}')")
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(DISTINCT message_id) FROM outbox_messages WHERE message_id < '~'"); n != 1000 {
			t.Errorf("%d different IDs of 1000", n)
		}
		variants := testdb.Column[string](t, s.DB,
			"SELECT DISTINCT SUBSTR(message_id, 20, 1) AS v FROM outbox_messages WHERE message_id < '~' ORDER BY v")
		if !slices.Equal(variants, []string{"8", "9", "a", "b"}) {
			t.Errorf("variant digits %v", variants)
		}
	})
}

func TestRowShardFollowsIDAndPriority(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for priority := 1; priority <= 5; priority++ {
			for i := range 40 {
				id := "payment_failed:sub_" + strconv.Itoa(i) + ":" + strconv.Itoa(priority)
				testdb.Exec(t, s.DB, "INSERT INTO outbox_messages (message_id, event_type, payload, priority) VALUES (?, 'welcome', '{}', ?)",
					id, priority)
				want := int(crc32.ChecksumIEEE([]byte(id)) % 16)
				if priority <= 2 {
					want += 16
				}
				if got := testdb.Value[int](t, s.DB, "SELECT shard FROM outbox_messages WHERE message_id = ?", id); got != want {
					t.Errorf("%s with priority %d: shard %d, want %d", id, priority, got, want)
				}
			}
		}
	})
}

func TestRowIDsAreCaseSensitive(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, id := range []string{"sub_a", "sub_A"} {
			testdb.Exec(t, s.DB, "INSERT INTO outbox_messages (message_id, event_type, payload) VALUES (?, 'welcome', '{}')", id)
		}
		for _, id := range []string{"sub_a", "sub_A"} {
			if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id = ?", id); n != 1 {
				t.Errorf("%s: %d rows", id, n)
			}
		}
	})
}

// A second index costs every producer, and lets a plan leave the primary key.
func TestRowTableHasOneIndex(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		got := testdb.Column[string](t, s.DB, `SELECT CONCAT(INDEX_NAME, ':', COLUMN_NAME) FROM information_schema.STATISTICS
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_messages' ORDER BY INDEX_NAME, SEQ_IN_INDEX`)
		if want := []string{"PRIMARY:shard", "PRIMARY:message_id"}; !slices.Equal(got, want) {
			t.Errorf("index columns %v, want %v", got, want)
		}
	})
}

// The instant that deliver_at means must not depend on the time zone of whoever writes or reads it.
func TestRowDeliverAtKeepsTheInstant(t *testing.T) {
	instant := time.Date(2026, 11, 1, 5, 30, 0, 123456000, time.UTC)
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for zone, local := range map[string]string{
			"+00:00": "2026-11-01 05:30:00.123456",
			"+09:00": "2026-11-01 14:30:00.123456",
			"-05:00": "2026-11-01 00:30:00.123456",
			"+05:45": "2026-11-01 11:15:00.123456",
		} {
			writer := testdb.Conn(t, s.DB, "SET time_zone = '"+zone+"'")
			testdb.Exec(t, writer, "INSERT INTO outbox_messages (message_id, event_type, payload, deliver_at) VALUES (?, 'welcome', '{}', ?)",
				zone, local)
		}
		for _, zone := range []string{"+00:00", "-11:00"} {
			reader := testdb.Conn(t, s.DB, "SET time_zone = '"+zone+"'")
			for _, at := range testdb.Column[string](t, reader, "SELECT UNIX_TIMESTAMP(deliver_at) FROM outbox_messages WHERE message_id < '~'") {
				if want := strconv.FormatInt(instant.Unix(), 10) + ".123456"; at != want {
					t.Errorf("read in %s: %s, want %s", zone, at, want)
				}
			}
		}
	})
}
