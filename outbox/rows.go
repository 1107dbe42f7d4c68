package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// Shards is how many shards the table has: 16, and 16 more for the express lane.
	Shards = 32
	// FirstExpressShard is the first shard of the express lane.
	FirstExpressShard = 16
	// InlineSize is the largest row, in bytes of payload and headers, that a page carries whole. A larger one comes
	// without them, and Load reads them when its turn has come: a page of 1 MiB rows must not exhaust memory.
	InlineSize = 8 << 10
)

// Row is a message as the relay sees it.
type Row struct {
	Key
	EventType string
	// Payload and Headers are the stored bytes; nil while the row is Large and not loaded. Headers may be nil anyway.
	Payload, Headers []byte
	// Size is the stored size of both, in bytes.
	Size int
	// DeliverAt is the column in UTC, RFC 3339 with microseconds, or "" where it is NULL.
	DeliverAt string
	// DeliverIn is DeliverAt minus the database's clock at the time of reading; zero or less: at once.
	DeliverIn time.Duration
	Priority  int
	// Read is when the page with the row was read. Nil in a Row that was not read; the process's clock then stands for the
	// database's.
	Read *Reading
}

// Reading is one instant on two clocks: At by this process's monotonic clock, DB by the database's.
type Reading struct{ At, DB time.Time }

// Now is the database's time at the instant now of this process.
func (r *Row) Now(now time.Time) time.Time {
	if r.Read == nil {
		return now
	}
	return r.Read.DB.Add(now.Sub(r.Read.At))
}

// Delay is how long from now the message must wait: by the database's clock, whatever the host's clock says. It is never
// negative.
func (r *Row) Delay(now time.Time) time.Duration {
	switch {
	case r.DeliverAt == "":
		return 0
	case r.Read == nil:
		return max(0, r.DeliverIn)
	}
	return max(0, r.DeliverIn-now.Sub(r.Read.At))
}

// Key names one row. An ID that is enqueued again makes another row with another CreatedAt.
type Key struct {
	Shard     uint8
	MessageID string
	CreatedAt string // the column as the session shows it
}

// Large reports that the row came without its payload and headers.
func (r *Row) Large() bool { return r.Payload == nil }

// Glance asks for the heads of shards one after the other, up to Limit rows in all. Where little waits it sees everything, at
// about a sixth of the cost of a position in each shard; where more waits it sees only the first shards. The zero value asks
// for nothing.
type Glance struct {
	Shards []uint8
	Limit  int
}

// Position is where to go on reading a shard.
type Position struct {
	Shard uint8
	After string // rows behind this message ID; "" is the shard's head
	Limit int
}

// Page is what one read found, and on what server.
type Page struct {
	Server ServerState
	Rows   []Row
}

// columns come in the order of the cells. Times are taken in the session's time zone, which the session has set to UTC, and
// come as text or as a time.Time, as the pool has it.
const columns = `shard, message_id, event_type, OCTET_LENGTH(payload) + COALESCE(OCTET_LENGTH(headers), 0) AS size,
 IF(OCTET_LENGTH(payload) + COALESCE(OCTET_LENGTH(headers), 0) <= %[1]d, payload, NULL) AS payload,
 IF(OCTET_LENGTH(payload) + COALESCE(OCTET_LENGTH(headers), 0) <= %[1]d, headers, NULL) AS headers,
 deliver_at, TIMESTAMPDIFF(MICROSECOND, NOW(6), deliver_at) AS deliver_in, priority, created_at`

// serverArm is the row that every page begins with: who answered, and whether it can be written to.
const serverArm = `(SELECT 255 AS shard, %s AS message_id, '' AS event_type, 0 AS size, NULL AS payload, NULL AS headers,
 NULL AS deliver_at, %s AS deliver_in, 0 AS priority, NOW(6) AS created_at)`

const shardArm = `(SELECT ` + columns + ` FROM %[2]s FORCE INDEX (PRIMARY)
 WHERE shard = ? AND message_id > ? AND message_id < '~' ORDER BY message_id LIMIT ?)`

// headsArm reads several shards in order, with one limit for them all.
const headsArm = `(SELECT ` + columns + ` FROM %[2]s FORCE INDEX (PRIMARY)
 WHERE shard IN (%[3]s) AND message_id < '~' ORDER BY shard, message_id LIMIT ?)`

// Reader reads pages on one session. It is not safe for concurrent use.
type Reader struct {
	table string
	conn  *sql.Conn
	kind  Kind
	last  int                  // rows of the page before, a good guess for the next
	stmts map[string]*sql.Stmt // by their text; they end with the session
	cells cells
}

// maxStmts bounds the statements kept: a change of the shards owned makes another.
const maxStmts = 64

// NewReader returns a reader on conn, a session prepared by Prepare.
func (t Table) NewReader(conn *sql.Conn, kind Kind) *Reader {
	return &Reader{table: t.name("outbox_messages"), conn: conn, kind: kind, stmts: map[string]*sql.Stmt{}}
}

// Page reads the heads that glance asks for and goes on from each position, in one statement without locks. Rows come in that
// order.
func (r *Reader) Page(ctx context.Context, glance Glance, positions ...Position) (Page, error) {
	arms := make([]string, 0, 1+len(positions))
	args := make([]any, 0, 1+3*len(positions))
	if len(glance.Shards) > 0 {
		numbers := make([]string, len(glance.Shards))
		for i, shard := range glance.Shards {
			numbers[i] = strconv.Itoa(int(shard))
		}
		arms = append(arms, fmt.Sprintf(headsArm, InlineSize, r.table, strings.Join(numbers, ",")))
		args = append(args, glance.Limit)
	}
	for _, p := range positions {
		arms = append(arms, fmt.Sprintf(shardArm, InlineSize, r.table))
		args = append(args, p.Shard, p.After, p.Limit)
	}
	return r.read(ctx, arms, args)
}

func (r *Reader) read(ctx context.Context, arms []string, args []any) (Page, error) {
	stmt, err := r.prepare(ctx, arms) //nolint:sqlclosecheck // kept for the session, and ends with it
	if err != nil {
		return Page{}, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return Page{}, err
	}
	defer rows.Close()
	page := Page{Rows: make([]Row, 0, r.last+r.last/8)}
	reading := &Reading{}
	for rows.Next() {
		if err := rows.Scan(r.cells.targets()...); err != nil {
			return Page{}, err
		}
		row, err := r.cells.row()
		if err != nil {
			return Page{}, err
		}
		if row.Shard == serverShard {
			page.Server = ServerState{ID: row.MessageID, ReadOnly: row.DeliverIn != 0}
			if reading.DB, err = time.Parse(timeFormat, row.CreatedAt); err != nil {
				return Page{}, err
			}
			continue
		}
		row.Read = reading
		page.Rows = append(page.Rows, row)
	}
	r.last = len(page.Rows)
	reading.At = time.Now()
	return page, rows.Err()
}

const (
	serverShard = 255
	timeFormat  = "2006-01-02 15:04:05.999999"
)

func (r *Reader) prepare(ctx context.Context, arms []string) (*sql.Stmt, error) {
	id, readOnly := r.kind.StateExprs()
	text := strings.Join(append([]string{fmt.Sprintf(serverArm, id, readOnly)}, arms...), " UNION ALL ")
	if s := r.stmts[text]; s != nil {
		return s, nil
	}
	if len(r.stmts) == maxStmts {
		for old, s := range r.stmts {
			if err := s.Close(); err != nil {
				return nil, err
			}
			delete(r.stmts, old)
		}
	}
	s, err := r.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	r.stmts[text] = s
	return s, nil
}

// RFC3339 turns a time as a UTC session shows it into RFC 3339.
func RFC3339(column string) string { return strings.Replace(column, " ", "T", 1) + "Z" }

// Queryer is a *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Load reads the payload and headers of a large row, on a session of any settings. ErrGone says that the row is not there
// any more.
func (t Table) Load(ctx context.Context, q Queryer, row *Row) error {
	created, err := time.Parse(timeFormat, row.CreatedAt)
	if err != nil {
		return fmt.Errorf("outbox: load %s: %w", row.MessageID, err)
	}
	instant := fmt.Sprintf("%d.%06d", created.Unix(), created.Nanosecond()/1000)
	err = q.QueryRowContext(ctx, "SELECT CAST(payload AS BINARY), CAST(headers AS BINARY) FROM "+t.name("outbox_messages")+
		" WHERE shard = ? AND message_id = ? AND UNIX_TIMESTAMP(created_at) = CAST(? AS DECIMAL(20, 6))", row.Shard, row.MessageID, instant).
		Scan(&row.Payload, &row.Headers)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrGone
	}
	return err
}

// ErrGone says that a row was deleted meanwhile.
var ErrGone = errors.New("outbox: the row is gone")

// Pending counts the rows that wait, up to limit, so that a large backlog costs no scan.
func (t Table) Pending(ctx context.Context, q Queryer, limit int) (n int, err error) {
	err = q.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM "+t.name("outbox_messages")+
		" WHERE message_id < '~' LIMIT ?) AS pending", limit).Scan(&n)
	return n, err
}
