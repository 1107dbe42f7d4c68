package outbox

import (
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// firstHalf and secondHalf are two instants that show the same local time where a zone turned its clocks back: no local text tells them
// apart. The zone's tables may be missing on a server, so one is made for the test.
var (
	firstHalf  = time.Date(2026, 11, 1, 5, 30, 0, 654321000, time.UTC) // 01:30 EDT
	secondHalf = firstHalf.Add(time.Hour)                              // 01:30 EST
)

// newYork makes the zone that the test needs in the server's tables: one change, at 06:00 UTC on 1 November 2026.
var newYork = []string{
	"DELETE FROM mysql.time_zone_transition_type WHERE Time_zone_id = 9901",
	"DELETE FROM mysql.time_zone_transition WHERE Time_zone_id = 9901",
	"DELETE FROM mysql.time_zone_name WHERE Time_zone_id = 9901",
	"DELETE FROM mysql.time_zone WHERE Time_zone_id = 9901",
	"INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (9901, 'N')",
	"INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/New_York', 9901)",
	"INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation)" +
		" VALUES (9901, 0, -14400, 1, 'EDT'), (9901, 1, -18000, 0, 'EST')",
	"INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id)" +
		" VALUES (9901, 1000000000, 0), (9901, 1793512800, 1)",
}

func TestDeliverAtIsExactInAnHourThatComesTwice(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, statement := range newYork {
			testdb.Exec(t, s.DB, statement)
		}
		conn := testdb.Conn(t, s.DB, "SET time_zone = 'Test/New_York'")
		local := func(at time.Time) string {
			return testdb.Value[string](t, conn, "SELECT DATE_FORMAT(FROM_UNIXTIME(?), '%Y-%m-%d %T')", at.Unix())
		}
		if local(firstHalf) != "2026-11-01 01:30:00" || local(secondHalf) != local(firstHalf) {
			t.Fatalf("the zone is wrong: %s, %s", local(firstHalf), local(secondHalf))
		}
		zone := time.FixedZone("elsewhere", 5*3600)
		for id, at := range map[string]time.Time{"first": firstHalf, "second": secondHalf, "zoned": secondHalf.In(zone)} {
			_, err := Enqueue(t.Context(), conn, Message{ID: id, EventType: "welcome", Payload: json0, DeliverAt: at})
			if err != nil {
				t.Fatal(err)
			}
		}
		rows := newRelay(t, s.DB).byID(t)
		for id, want := range map[string]string{
			"first": "2026-11-01T05:30:00.654321Z", "second": "2026-11-01T06:30:00.654321Z", "zoned": "2026-11-01T06:30:00.654321Z",
		} {
			if got := rows[id].DeliverAt; got != want {
				t.Errorf("%s: %s, want %s", id, got, want)
			}
		}
	})
}

func TestDeliverAtLimits(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, at := range []time.Time{
			time.Unix(1, 0), time.Unix(1<<31-1, 0), time.Date(2026, 3, 29, 1, 30, 0, 999_999_999, time.UTC),
			time.Date(2026, 3, 29, 1, 30, 0, 5_000, time.UTC),
		} {
			for _, zone := range []string{"+00:00", "+13:00", "-12:00"} {
				conn := testdb.Conn(t, s.DB, "SET time_zone = '"+zone+"'")
				if _, err := Enqueue(t.Context(), conn, Message{EventType: "welcome", Payload: json0, DeliverAt: at}); err != nil {
					t.Errorf("%s in %s: %v", at, zone, err)
					continue
				}
				rows := newRelay(t, s.DB).all(t)
				if want := at.UTC().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z"); rows[0].DeliverAt != want {
					t.Errorf("in %s: %s, want %s", zone, rows[0].DeliverAt, want)
				}
				testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id < '~'")
			}
		}
	})
}

// A delay is measured against the database's clock at the time of the read, and never negative.
func TestDelay(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, `INSERT INTO outbox_messages (message_id, event_type, payload, deliver_at) VALUES
 ('hour', 'welcome', '{}', NOW(6) + INTERVAL 1 HOUR), ('past', 'welcome', '{}', NOW(6) - INTERVAL 1 HOUR), ('none', 'welcome', '{}', NULL)`)
		rows := newRelay(t, s.DB).byID(t)
		for id, want := range map[string]time.Duration{"hour": time.Hour, "past": 0, "none": 0} {
			row := rows[id]
			got := row.Delay(row.Read.At)
			if got > want || got < want-time.Minute {
				t.Errorf("%s: %s, want %s", id, got, want)
			}
			if later := row.Delay(row.Read.At.Add(40 * time.Minute)); later != max(0, got-40*time.Minute) {
				t.Errorf("%s: %s after 40 minutes", id, later)
			}
			created, err := time.Parse(timeFormat, row.CreatedAt)
			if age := row.Now(row.Read.At).Sub(created); err != nil || age < 0 || age > time.Minute {
				t.Errorf("%s: the database's time is %s after created_at, %v", id, age, err)
			}
		}
	})
}

// A Row that a test or a Starter makes by hand was read at no time.
func TestARowThatWasNotRead(t *testing.T) {
	now := time.Now()
	row := Row{DeliverAt: "2030-01-01T00:00:00Z", DeliverIn: time.Minute}
	if row.Now(now) != now || row.Delay(now) != time.Minute {
		t.Errorf("now %s, delay %s", row.Now(now), row.Delay(now))
	}
}
