package outbox

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// What breaks the contract is refused with the field's name before any SQL is sent, alone and among good messages.
func TestInvalidMessagesAreNotSent(t *testing.T) {
	good := Message{ID: "good", EventType: "welcome", Payload: json0}
	for _, c := range []struct {
		name, field string
		change      func(m *Message)
	}{
		{"ID too long", "ID", func(m *Message) { m.ID = strings.Repeat("a", 129) }},
		{"ID with a space", "ID", func(m *Message) { m.ID = "a b" }},
		{"ID with ?", "ID", func(m *Message) { m.ID = "a?" }},
		{"ID with ~", "ID", func(m *Message) { m.ID = "~00" }},
		{"ID with é", "ID", func(m *Message) { m.ID = "café" }},
		{"ID that ends in a line break", "ID", func(m *Message) { m.ID = "a\n" }},
		{"no event type", "EventType", func(m *Message) { m.EventType = "" }},
		{"event type too long", "EventType", func(m *Message) { m.EventType = strings.Repeat("a", 65) }},
		{"event type with a colon", "EventType", func(m *Message) { m.EventType = "a:b" }},
		{"event type that ends in a line break", "EventType", func(m *Message) { m.EventType = "a\n" }},
		{"no payload", "Payload", func(m *Message) { m.Payload = nil }},
		{"empty payload", "Payload", func(m *Message) { m.Payload = []byte{} }},
		{"payload cut short", "Payload", func(m *Message) { m.Payload = []byte(`{"a":1`) }},
		{"payload with a tail", "Payload", func(m *Message) { m.Payload = []byte(`{} {}`) }},
		{"payload with a name twice", "Payload", func(m *Message) { m.Payload = json.RawMessage(`{"b":{"a":1,"a":1}}`) }},
		{"payload of bad UTF-8", "Payload", func(m *Message) { m.Payload = []byte("\"\xff\"") }},
		{"payload that cannot be marshalled", "Payload", func(m *Message) { m.Payload = math.NaN() }},
		{"payload of 1 MiB and 1 byte", "Payload", func(m *Message) { m.Payload = strings.Repeat("a", 1<<20-1) }},
		{"payload nested too deep", "Payload", func(m *Message) {
			m.Payload = []byte(strings.Repeat("[", 500) + strings.Repeat("]", 500))
		}},
		{"headers too large", "Headers", func(m *Message) { m.Headers = map[string]string{"a": strings.Repeat("a", 8185)} }},
		{"priority -1", "Priority", func(m *Message) { m.Priority = -1 }},
		{"priority 6", "Priority", func(m *Message) { m.Priority = 6 }},
		{"deliver_at in 1960", "DeliverAt", func(m *Message) { m.DeliverAt = time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"deliver_at in 2100", "DeliverAt", func(m *Message) { m.DeliverAt = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := good
			c.change(&bad)
			for _, ms := range [][]Message{{bad}, {good, bad}} {
				_, err := EnqueueMany(t.Context(), refuse{t}, ms)
				var invalid *InvalidError
				if !errors.As(err, &invalid) || invalid.Field != c.field {
					t.Fatalf("error %v, want an InvalidError of %s", err, c.field)
				}
				if !strings.Contains(err.Error(), c.field) || invalid.Reason == "" {
					t.Errorf("the text %q does not name the field", err)
				}
			}
		})
	}
}

func TestTooManyMessagesAreNotSent(t *testing.T) {
	many := make([]Message, MaxMessages+1)
	for i := range many {
		many[i] = Message{EventType: "welcome", Payload: json0}
	}
	if _, err := EnqueueMany(t.Context(), refuse{t}, many); err == nil {
		t.Errorf("%d messages: no error", len(many))
	}
	large := Message{EventType: "welcome", Payload: strings.Repeat("a", 1<<20-2)}
	if _, err := EnqueueMany(t.Context(), refuse{t}, []Message{large, large, large, large, large}); err == nil {
		t.Error("5 MiB: no error")
	}
}
