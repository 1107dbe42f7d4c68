package monitor

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// tracked are rows that this process has seen waiting: of each shard the first and the last at the time when they came under
// watch. While one of them is there it has waited since it was first seen; how old it is does not matter, since it may have been
// committed late. The first shows a row that goes nowhere, the last a backlog that does not get shorter.
type tracked struct {
	rows map[rowKey]time.Time // when each was first seen, by this machine's steady clock
}

// rowKey tells a row from a later one with the same ID.
type rowKey struct {
	shard   int
	id      string
	created string
}

func newTracked() *tracked { return &tracked{rows: map[rowKey]time.Time{}} }

// forget begins anew, where nobody could look for a while.
func (t *tracked) forget() { clear(t.rows) }

// waiting is for how long a row has been seen waiting.
func (t *tracked) waiting() (longest time.Duration) {
	for _, since := range t.rows {
		longest = max(longest, time.Since(since))
	}
	return longest
}

const firstSQL = `(SELECT shard, message_id, CAST(created_at AS CHAR), TIMESTAMPDIFF(MICROSECOND, created_at, NOW(6)) FROM outbox_messages
 FORCE INDEX (PRIMARY) WHERE shard = %d AND message_id < '~' ORDER BY message_id%s LIMIT 1)`

const pointSQL = `(SELECT shard, message_id, CAST(created_at AS CHAR), TIMESTAMPDIFF(MICROSECOND, created_at, NOW(6)) FROM outbox_messages
 WHERE shard = %d AND message_id = ?)`

// look reads the first row of each shard and, where there are any, the last ones and those under watch.
func (t *tracked) look(ctx context.Context, db *sql.DB, s *State) error {
	var parts []string
	for shard := range outbox.Shards {
		parts = append(parts, fmt.Sprintf(firstSQL, shard, ""))
	}
	firsts, err := read(ctx, db, s, parts, nil)
	if err != nil {
		return err
	}
	if len(firsts) == 0 {
		clear(t.rows)
		return nil
	}
	var args []any
	parts = nil
	for key := range firsts {
		parts = append(parts, fmt.Sprintf(firstSQL, key.shard, " DESC"))
	}
	for key := range t.rows {
		if !firsts[key] {
			parts, args = append(parts, fmt.Sprintf(pointSQL, key.shard)), append(args, key.id)
		}
	}
	others, err := read(ctx, db, s, parts, args)
	if err != nil {
		return err
	}
	t.keep(firsts, others)
	return nil
}

// keep goes on with those under watch that are still there. A shard whose first or last row has gone gets new ones.
func (t *tracked) keep(firsts, others map[rowKey]bool) {
	now := time.Now()
	watched := map[int]int{}
	for key := range t.rows {
		if !firsts[key] && !others[key] {
			delete(t.rows, key)
			continue
		}
		watched[key.shard]++
	}
	for _, found := range []map[rowKey]bool{firsts, others} {
		for key := range found {
			if _, known := t.rows[key]; !known && watched[key.shard] < perShard {
				t.rows[key] = now
				watched[key.shard]++
			}
		}
	}
}

// perShard is how many rows of a shard are under watch.
const perShard = 2

func read(ctx context.Context, db *sql.DB, s *State, parts []string, args []any) (map[rowKey]bool, error) {
	found := map[rowKey]bool{}
	rows, err := db.QueryContext(ctx, strings.Join(parts, " UNION ALL "), args...)
	if err != nil {
		return nil, fmt.Errorf("read the first rows of outbox_messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key rowKey
		var age float64
		if err := rows.Scan(&key.shard, &key.id, &key.created, &age); err != nil {
			return nil, fmt.Errorf("read the first rows of outbox_messages: %w", err)
		}
		found[key] = true
		s.Outbox.Oldest = max(s.Outbox.Oldest, age/1e6)
	}
	return found, rows.Err()
}
