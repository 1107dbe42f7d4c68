package monitor

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
)

// exactly is how many rows are counted one by one.
const exactly = 10_000

// lookTimeout bounds all of one look at the database.
const lookTimeout = 5 * time.Second

var errReadOnly = errors.New("the server is read-only: a demoted primary, or one in maintenance")

// database reads what the tables tell.
type database struct {
	db    *sql.DB
	kind  outbox.Kind
	known bool   // kind is
	name  string // the database's, once it was read
}

// read fills in s. Where it fails, s.Database says why, and what could not be read is as it was. clock gets one time, as early as may be: the
// database's, or s.At where it does not answer.
func (d *database) read(ctx context.Context, s *State, rows *tracked, t Thresholds, clock chan<- time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var whole State
	err := d.server(ctx, &whole)
	if err != nil {
		clock <- s.At
	} else {
		clock <- whole.At
		d.name = whole.Database.Name
		err = all(ctx, &whole, func(ctx context.Context, s *State) error { return d.processes(ctx, s, t) }, d.stops, d.raised)
	}
	if err != nil {
		s.Database = Part{Name: d.name, Error: worded(err)}
		return
	}
	*s = whole
	s.Database.OK = true
	// A lock on one table must not hide who lives.
	if err := all(ctx, s, d.pending, d.failed, func(ctx context.Context, s *State) error { return rows.look(ctx, d.db, s) }); err != nil {
		s.Outbox = Outbox{Error: worded(err)}
	}
	s.Outbox.Waiting = s.waiting(rows.waiting())
}

// noSuchTable begins the driver's text of ER_NO_SUCH_TABLE. Its type is for internal/mysqldb alone.
const noSuchTable = "Error 1146 "

// worded adds to the server's words what to do, where they do not tell.
func worded(err error) string {
	text := err.Error()
	if strings.Contains(text, noSuchTable) {
		text += ": run `oncepost migrate`"
	}
	return text
}

func all(ctx context.Context, s *State, reads ...func(context.Context, *State) error) error {
	for _, read := range reads {
		if err := read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// waiting is the longest that any process has seen a row waiting.
func (s *State) waiting(here time.Duration) float64 {
	longest := here.Seconds()
	for _, p := range s.Processes {
		if p.Alive {
			longest = max(longest, p.Waiting)
		}
		if p.Alive && p.Relay != nil {
			longest = max(longest, p.Relay.Waiting)
		}
	}
	return longest
}

// server asks who answers, and what time it is there.
func (d *database) server(ctx context.Context, s *State) error {
	if !d.known {
		var version string
		if err := d.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
			return err
		}
		d.kind, d.known = outbox.KindOf(version), true
	}
	_, readOnly := d.kind.StateExprs()
	var now float64
	var refuses bool
	var name sql.NullString
	if err := d.db.QueryRowContext(ctx, "SELECT UNIX_TIMESTAMP(NOW(6)), DATABASE(), "+readOnly).Scan(&now, &name, &refuses); err != nil {
		return err
	}
	s.At, s.Database.Name = instant(now), name.String
	if refuses {
		return errReadOnly
	}
	return nil
}

func instant(unix float64) time.Time { return time.UnixMicro(int64(math.Round(unix * 1e6))).UTC() }

// remembered is for how long a process that has gone without a word is shown.
const remembered = time.Hour

func (d *database) processes(ctx context.Context, s *State, t Thresholds) error {
	rows, err := d.db.QueryContext(ctx, `SELECT process_id, role, host, pid, version, UNIX_TIMESTAMP(started_at),
 TIMESTAMPDIFF(MICROSECOND, seen_at, NOW(6)), state FROM processes WHERE seen_at > NOW(6) - INTERVAL ? SECOND ORDER BY role, host, pid, process_id`,
		int64(remembered.Seconds()))
	if err != nil {
		return fmt.Errorf("read processes: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			p           Process
			id, state   []byte
			began, seen float64
		)
		if err := rows.Scan(&id, &p.Role, &p.Host, &p.PID, &p.Version, &began, &seen, &state); err != nil {
			return fmt.Errorf("read processes: %w", err)
		}
		p.ID, p.Started, p.SeenAgo = hex.EncodeToString(id), instant(began), max(0, seen/1e6)
		p.Alive = p.SeenAgo < t.of(p.Role).Seconds()
		p.Published = published(state, p.Role)
		s.Processes = append(s.Processes, p)
	}
	s.summarise()
	return rows.Err()
}

// published reads what a process says of itself, as far as it can be read: another version may say it in another way. A worker that
// says nothing serves what workers serve.
func published(state []byte, role string) (p Published) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(state, &parts); err != nil {
		parts = nil
	}
	for name, into := range map[string]any{"relay": &p.Relay, "worker": &p.Worker, "sees": &p.Sees, "waiting_seconds": &p.Waiting} {
		if err := json.Unmarshal(parts[name], into); err != nil {
			delete(parts, name)
		}
	}
	if parts["relay"] == nil {
		p.Relay = nil // not half of it
	}
	if parts["worker"] == nil {
		p.Worker = nil
	}
	if role == RoleWorker && p.Worker == nil {
		p.Worker = &Worker{TaskQueues: []string{schemas.WorkflowTaskQueue, schemas.SendTaskQueue}}
	}
	return p
}

// of is after how long a process of a role counts as dead.
func (t Thresholds) of(role string) time.Duration {
	if role == RoleRelay {
		return t.NoRelay
	}
	return t.NoWorker
}

// summarise sums up what the processes say of themselves.
func (s *State) summarise() {
	s.Sends = map[string]int64{}
	s.Shards = make([]Shard, outbox.Shards)
	for i := range s.Shards {
		s.Shards[i].Shard = i
	}
	newest := math.Inf(1)
	for _, p := range s.Processes {
		if !p.Alive {
			continue
		}
		if r := p.Relay; r != nil {
			s.own(r.Shards, fmt.Sprintf("%s:%d", p.Host, p.PID))
		}
		w := p.Worker
		if w == nil {
			continue
		}
		for outcome, n := range w.Sends {
			s.Sends[outcome] += n
		}
		if w.SentAgo != nil {
			if ago := *w.SentAgo + p.SeenAgo; s.SentAgo == nil || ago < *s.SentAgo {
				s.SentAgo = &ago
			}
		}
		if w.Quota != nil && p.SeenAgo < newest {
			s.Quota, newest = w.Quota, p.SeenAgo
		}
	}
}

func (s *State) own(shards []int, owner string) {
	for _, shard := range shards {
		if shard >= 0 && shard < len(s.Shards) {
			s.Shards[shard].Owner = owner
		}
	}
}

func (d *database) stops(ctx context.Context, s *State) error {
	rows, err := d.db.QueryContext(ctx, "SELECT scope, class, cause, stopped_by, UNIX_TIMESTAMP(since) FROM sending_stops ORDER BY scope")
	if err != nil {
		return fmt.Errorf("read sending_stops: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var stop Stop
		var since float64
		if err := rows.Scan(&stop.Scope, &stop.Class, &stop.Cause, &stop.By, &since); err != nil {
			return fmt.Errorf("read sending_stops: %w", err)
		}
		stop.Since = instant(since)
		s.Stops = append(s.Stops, stop)
	}
	return rows.Err()
}

func (d *database) raised(ctx context.Context, s *State) error {
	rows, err := d.db.QueryContext(ctx, `SELECT name, subject, detail, UNIX_TIMESTAMP(since), told_at IS NOT NULL,
 COALESCE(telling_ends_at > NOW(6), FALSE), holds_until IS NOT NULL, COALESCE(holds_until <= NOW(6), FALSE) FROM ops_conditions ORDER BY since, name, subject`)
	if err != nil {
		return fmt.Errorf("read ops_conditions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r Raised
		var since float64
		if err := rows.Scan(&r.Name, &r.Subject, &r.Detail, &since, &r.Told, &r.telling, &r.event, &r.over); err != nil {
			return fmt.Errorf("read ops_conditions: %w", err)
		}
		r.Since = instant(since)
		s.Raised = append(s.Raised, r)
	}
	return rows.Err()
}

// pending counts the rows that wait, one by one up to a bound. Above it the server's own estimate, from its index and not from
// statistics that may be old, must do: no query goes through millions of rows.
func (d *database) pending(ctx context.Context, s *State) error {
	n, err := outbox.Table{}.Pending(ctx, d.db, exactly+1)
	if err != nil {
		return fmt.Errorf("count outbox_messages: %w", err)
	}
	s.Outbox.Pending = Count{Rows: int64(n), Exact: n <= exactly}
	if s.Outbox.Pending.Exact {
		return nil
	}
	estimate, err := d.estimate(ctx)
	s.Outbox.Pending.Rows = max(estimate, exactly+1)
	return err
}

func (d *database) estimate(ctx context.Context) (total int64, err error) {
	explain := "EXPLAIN "
	if d.kind == outbox.MySQL {
		explain = "EXPLAIN FORMAT=TRADITIONAL " // the default is the server's to set
	}
	parts := make([]string, outbox.Shards)
	for i := range parts {
		parts[i] = fmt.Sprintf("SELECT 1 FROM outbox_messages FORCE INDEX (PRIMARY) WHERE shard = %d AND message_id < '~'", i)
	}
	rows, err := d.db.QueryContext(ctx, explain+strings.Join(parts, " UNION ALL "))
	if err != nil {
		return 0, fmt.Errorf("estimate the rows of outbox_messages: %w", err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		var n sql.NullInt64
		into := make([]any, len(columns))
		for i, name := range columns {
			if into[i] = new(sql.RawBytes); name == "rows" {
				into[i] = &n
			}
		}
		if err := rows.Scan(into...); err != nil {
			return 0, fmt.Errorf("estimate the rows of outbox_messages: %w", err)
		}
		total += n.Int64
	}
	return total, rows.Err()
}

func (d *database) failed(ctx context.Context, s *State) error {
	var n int64
	err := d.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM outbox_failed LIMIT ?) AS failed", exactly+1).Scan(&n)
	if err != nil {
		return fmt.Errorf("count outbox_failed: %w", err)
	}
	s.Outbox.Failed = Count{Rows: n, Exact: n <= exactly}
	return nil
}
