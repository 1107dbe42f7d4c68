package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

const (
	// leastAge is how old a row is at least when it goes.
	leastAge = 90 * 24 * time.Hour
	// afterRetention is how much longer than the closed workflow itself its rows stay.
	afterRetention = 30 * 24 * time.Hour
	// purgeBatch is how many messages one round looks at before it pauses.
	purgeBatch = 100
	purgePause = time.Second // between the batches of a round
	purgeCall  = 10 * time.Second
)

// Keeper knows how long a message's rows are needed.
type Keeper interface {
	// Retention is for how long a closed workflow can be looked at and reset.
	Retention(ctx context.Context) (time.Duration, error)
	// Known reports whether there is a workflow of the message, running or closed: a closed one can be reset.
	Known(ctx context.Context, messageID string) (bool, error)
}

// Purge deletes the rows that nothing can ask for any more: those of workflows that Temporal does not know any more, 90 days (and
// not less than the namespace's retention and 30 days) after they were last claimed or seen to be known. Several at once do no
// harm.
type Purge struct {
	DB     *sql.DB
	Keeper Keeper
}

// Round goes through all rows that are old enough, once, and says how many it has deleted.
func (p Purge) Round(ctx context.Context) (deleted int64, err error) {
	call, cancel := context.WithTimeout(ctx, purgeCall)
	defer cancel()
	retention, err := p.Keeper.Retention(call)
	if err != nil {
		return 0, fmt.Errorf("ledger: read the namespace's retention: %w", err)
	}
	age := max(leastAge, retention+afterRetention)
	after := position{created: "1970-01-02 00:00:00"}
	for {
		batch, err := p.batch(ctx, age, after)
		if err != nil || len(batch) == 0 {
			return deleted, err
		}
		for i, row := range batch {
			if i > 0 && row.id == batch[i-1].id {
				continue
			}
			n, err := p.delete(ctx, age, row.id)
			if err != nil {
				return deleted, err
			}
			deleted += n
		}
		after = batch[len(batch)-1]
		if !pause(ctx, purgePause) {
			return deleted, ctx.Err()
		}
	}
}

// position is a row's place in the order of age.
type position struct{ created, id string }

func (p Purge) batch(ctx context.Context, age time.Duration, after position) (batch []position, err error) {
	ctx, cancel := context.WithTimeout(ctx, purgeCall)
	defer cancel()
	rows, err := p.DB.QueryContext(ctx, `SELECT CAST(created_at AS CHAR), message_id FROM sends
 WHERE created_at < NOW(6) - INTERVAL ? SECOND AND expires_at < NOW(6) - INTERVAL ? SECOND
 AND created_at >= ? AND NOT (created_at = ? AND message_id <= ?)
 ORDER BY created_at, message_id LIMIT ?`, int64(age.Seconds()), int64(age.Seconds()), after.created, after.created, []byte(after.id), purgeBatch)
	if err != nil {
		return nil, fmt.Errorf("ledger: look for old rows: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var row position
		if err := rows.Scan(&row.created, &row.id); err != nil {
			return nil, fmt.Errorf("ledger: look for old rows: %w", err)
		}
		batch = append(batch, row)
	}
	return batch, rows.Err()
}

// delete deletes a message's old rows, unless there is a workflow of it still. Those count as new then: an old claim's end may
// be any time that has passed.
func (p Purge) delete(ctx context.Context, age time.Duration, id string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, purgeCall)
	defer cancel()
	known, err := p.Keeper.Known(ctx, id)
	if err != nil {
		return 0, err
	}
	const old = " WHERE message_id = ? AND expires_at < NOW(6) - INTERVAL ? SECOND"
	if known {
		if _, err := p.DB.ExecContext(ctx, "UPDATE sends SET expires_at = NOW(6)"+old, []byte(id), int64(age.Seconds())); err != nil {
			return 0, fmt.Errorf("ledger: keep old rows: %w", err)
		}
		return 0, nil
	}
	r, err := p.DB.ExecContext(ctx, "DELETE FROM sends"+old, []byte(id), int64(age.Seconds()))
	if err != nil {
		return 0, fmt.Errorf("ledger: delete old rows: %w", err)
	}
	return r.RowsAffected()
}

// pause reports whether ctx still goes on after d.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
