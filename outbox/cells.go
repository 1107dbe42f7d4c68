package outbox

import (
	"bytes"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// cells are the columns of one row as the driver hands them over, valid until the next row. Rows come by the hundred
// thousand, and each allocation more costs a good part of what reading a row costs: so a row makes two, one for its
// payload and headers and one for its key, and event types are kept.
type cells struct {
	shard, size, deliverIn, priority                             any
	messageID, eventType, payload, headers, deliverAt, createdAt sql.RawBytes

	scan  []any
	key   []byte
	types map[string]string
}

// maxTypes bounds the event types kept: a table has a handful.
const maxTypes = 1000

// targets are the cells in the order of columns.
func (c *cells) targets() []any {
	if c.scan == nil {
		c.scan = []any{
			&c.shard, &c.messageID, &c.eventType, &c.size, &c.payload, &c.headers, &c.deliverAt, &c.deliverIn, &c.priority, &c.createdAt,
		}
	}
	return c.scan
}

// row copies the cells.
func (c *cells) row() (row Row, err error) {
	var shard, size, deliverIn, priority int64
	for i, to := range [...]*int64{&shard, &size, &deliverIn, &priority} {
		if *to, err = integer([...]any{c.shard, c.size, c.deliverIn, c.priority}[i]); err != nil {
			return row, err
		}
	}
	c.key = append(append(c.key[:0], c.messageID...), columnTime(c.createdAt)...)
	key := string(c.key)
	row = Row{
		Key:       Key{Shard: uint8(shard), MessageID: key[:len(c.messageID)], CreatedAt: key[len(c.messageID):]}, //nolint:gosec // 0 to 31
		EventType: c.typeName(), Size: int(size), Priority: int(priority), DeliverIn: time.Duration(deliverIn) * time.Microsecond,
	}
	if c.deliverAt != nil {
		row.DeliverAt = RFC3339(string(columnTime(c.deliverAt)))
	}
	if c.payload != nil {
		both := append(append(make([]byte, 0, len(c.payload)+len(c.headers)), c.payload...), c.headers...)
		row.Payload = both[:len(c.payload):len(c.payload)]
		if c.headers != nil {
			row.Headers = both[len(c.payload):]
		}
	}
	return row, nil
}

// columnTime is a time as the session shows it: 2026-01-02 15:04:05.000006. A pool with parseTime has made a time.Time of
// that text, in whatever zone, which database/sql writes as RFC 3339: in place, T and the zone become a space and nothing.
func columnTime(cell []byte) []byte {
	const date = len("2026-01-02")
	if len(cell) <= date || cell[date] != 'T' {
		return cell
	}
	cell[date] = ' '
	if zone := bytes.LastIndexAny(cell, "Z+-"); zone > date {
		cell = cell[:zone]
	}
	return cell
}

// integer reads an integer column: MariaDB's driver sends some as text.
func integer(cell any) (int64, error) {
	switch v := cell.(type) {
	case nil:
		return 0, nil
	case int64:
		return v, nil
	case []byte:
		return strconv.ParseInt(string(v), 10, 64)
	default:
		return 0, fmt.Errorf("outbox: the driver gives %T for an integer column", cell)
	}
}

func (c *cells) typeName() string {
	if name, kept := c.types[string(c.eventType)]; kept {
		return name
	}
	if c.types == nil || len(c.types) >= maxTypes {
		c.types = map[string]string{}
	}
	name := string(c.eventType)
	c.types[name] = name
	return name
}
