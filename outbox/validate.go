package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/oncepost/oncepost/schemas"
)

var (
	messageID = regexp.MustCompile(`^[!->@-}]+\z`)
	eventType = regexp.MustCompile(`^[A-Za-z0-9_.-]+\z`)
	// lastTime is the end of MySQL's TIMESTAMP (MariaDB 11.5 and later reach 2106).
	lastTime = time.Unix(1<<31-1, 0)
)

// values are a Message's columns, checked and with the defaults filled in.
type values struct {
	id, eventType    string
	payload, headers []byte
	deliverAt        time.Time
	priority         int
}

func prepare(m Message) (values, error) {
	v := values{id: m.ID, eventType: m.EventType, deliverAt: m.DeliverAt, priority: m.Priority}
	if v.id == "" {
		v.id = newID(time.Now())
	}
	if v.priority == 0 {
		v.priority = schemas.DefaultPriority
	}
	var err error
	if v.payload, err = payload(m.Payload); err != nil {
		return v, &InvalidError{Field: "Payload", Reason: err.Error()}
	}
	if len(m.Headers) > 0 {
		if v.headers, err = json.Marshal(m.Headers); err != nil {
			return v, &InvalidError{Field: "Headers", Reason: err.Error()}
		}
	}
	return v, v.check()
}

func payload(p any) ([]byte, error) {
	switch p := p.(type) {
	case nil:
		return nil, errors.New("is missing")
	case []byte:
		return p, schemas.CheckJSON(p)
	case json.RawMessage:
		return p, schemas.CheckJSON(p)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return b, schemas.CheckJSON(b)
}

func (v values) check() error {
	switch {
	case len(v.id) > schemas.MaxMessageID || !messageID.MatchString(v.id):
		return &InvalidError{"ID", fmt.Sprintf("must be 1 to %d printable ASCII characters 0x21-0x7D without '?', "+
			"is %d bytes: %.40q", schemas.MaxMessageID, len(v.id), v.id)}
	case len(v.eventType) > schemas.MaxEventType || !eventType.MatchString(v.eventType):
		return &InvalidError{"EventType", fmt.Sprintf("must be 1 to %d of A-Z a-z 0-9 _ . -, is %d bytes: %.40q",
			schemas.MaxEventType, len(v.eventType), v.eventType)}
	case len(v.payload) > schemas.MaxPayload:
		return &InvalidError{"Payload", fmt.Sprintf("is %d bytes, at most %d go: store the data elsewhere and send "+
			"a reference", len(v.payload), schemas.MaxPayload)}
	case len(v.headers) > schemas.MaxHeaders:
		return &InvalidError{"Headers", fmt.Sprintf("are %d bytes as JSON, at most %d go", len(v.headers), schemas.MaxHeaders)}
	case v.priority < schemas.MinPriority || v.priority > schemas.MaxPriority:
		return &InvalidError{"Priority", fmt.Sprintf("must be %d (first) to %d, or 0 for the default, is %d",
			schemas.MinPriority, schemas.MaxPriority, v.priority)}
	case !v.deliverAt.IsZero() && (v.deliverAt.Unix() < 1 || v.deliverAt.After(lastTime)):
		return &InvalidError{"DeliverAt", fmt.Sprintf("must be after 1970-01-01 and before 2038-01-19, is %s",
			v.deliverAt.UTC().Format(time.RFC3339))}
	}
	return nil
}
