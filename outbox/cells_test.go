package outbox

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

func TestEventTypesKeptAreBounded(t *testing.T) {
	var c cells
	for round := range 2 {
		for i := range maxTypes + maxTypes/2 {
			want := fmt.Sprintf("type_%04d", i)
			c.eventType = append(c.eventType[:0], want...) // in the driver's buffer, used again
			if got := c.typeName(); got != want {
				t.Fatalf("round %d: %s, want %s", round, got, want)
			}
			if len(c.types) > maxTypes {
				t.Fatalf("%d event types are kept", len(c.types))
			}
		}
	}
}

func TestAKeptEventTypeIsMadeOnce(t *testing.T) {
	var c cells
	c.eventType = bytes.Repeat([]byte("w"), 64) // too long for a buffer on the stack
	c.typeName()
	if n := testing.AllocsPerRun(100, func() { c.typeName() }); n != 0 {
		t.Errorf("%v allocations for an event type that is kept", n)
	}
}

// TestRowsKeepTheirContentWhileLaterPagesAreRead: the driver uses its buffers again for each row.
func TestRowsKeepTheirContentWhileLaterPagesAreRead(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		ids := idsIn(3, 40)
		at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
		want := map[string]Message{}
		for i, id := range ids {
			m := Message{
				ID: id, EventType: fmt.Sprintf("type_%02d", i%7), Payload: []byte(`"` + strings.Repeat(string(rune('a'+i%26)), i*90) + `"`),
			}
			if i%2 == 0 {
				m.Headers = map[string]string{"n": strings.Repeat(string(rune('z'-i%26)), 40)}
			}
			if i%3 == 0 {
				m.DeliverAt = at.Add(time.Duration(i) * time.Hour)
			}
			want[id] = m
			enqueue(t, s.DB, m)
		}
		r := newRelay(t, s.DB)
		var rows []Row
		for page := range 4 {
			p, err := r.Page(t.Context(), Glance{}, Position{3, append([]string{""}, ids...)[10*page], 10})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, p.Rows...)
		}
		if len(rows) != len(ids) {
			t.Fatalf("%d rows, want %d", len(rows), len(ids))
		}
		for i := range rows {
			rows[i].check(t, want[ids[i]])
		}
	})
}

// check compares a row with the message it was made from.
func (r *Row) check(t *testing.T, m Message) {
	t.Helper()
	if r.MessageID != m.ID || r.EventType != m.EventType || string(r.Payload) != string(m.Payload.([]byte)) || r.Shard != 3 ||
		r.Priority != 3 || r.Size != len(r.Payload)+len(r.Headers) || len(r.CreatedAt) != len("2006-01-02 15:04:05.000000") {
		t.Errorf("%s: row %+v", m.ID, r.Key)
	}
	headers := ""
	if m.Headers != nil {
		headers = `{"n":"` + m.Headers["n"] + `"}`
	}
	if string(r.Headers) != headers || (r.Headers == nil) != (headers == "") {
		t.Errorf("%s: headers %q (nil: %v), want %q", m.ID, r.Headers, r.Headers == nil, headers)
	}
	deliverAt := ""
	if !m.DeliverAt.IsZero() {
		deliverAt = m.DeliverAt.Format("2006-01-02T15:04:05.000000Z")
	}
	if r.DeliverAt != deliverAt || (r.DeliverIn != 0) != (deliverAt != "") {
		t.Errorf("%s: deliver_at %q in %s, want %q", m.ID, r.DeliverAt, r.DeliverIn, deliverAt)
	}
	if cap(r.Payload) != len(r.Payload) {
		t.Errorf("%s: an append to the payload would write over the headers", m.ID)
	}
}
