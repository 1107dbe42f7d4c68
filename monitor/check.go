package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Check tries, and takes back, all that a process which watches does in the database: whether its account has the rights of
// docs/grants.md. It changes nothing.
func Check(ctx context.Context, db *sql.DB) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var s State
	(&database{db: db}).read(ctx, &s, newTracked(), Thresholds{}.WithDefaults(), make(chan time.Time, 1))
	if text := s.Database.Error + s.Outbox.Error; text != "" {
		return errors.New(text)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if undone := tx.Rollback(); err == nil {
			err = undone
		}
	}()
	id, k := newID(), key{"check", newID()}
	for _, do := range []struct {
		query string
		args  []any
	}{
		{beatSQL, []any{id, RoleWatch, "", 0, "", "{}"}},
		{beatSQL, []any{id, RoleWatch, "", 0, "", "{}"}},
		{farewellSQL, []any{id}},
		{raiseSQL, []any{k.name, k.subject, "", 0, id, 1}},
		{insteadSQL, []any{id, 1, k.name, k.subject, false}},
		{toldSQL, []any{k.name, k.subject, id}},
		{dropSQL, []any{k.name, k.subject, id}},
	} {
		if _, err := tx.ExecContext(ctx, do.query, do.args...); err != nil {
			return fmt.Errorf("the account's rights do not suffice to watch (docs/grants.md): %w", err)
		}
	}
	return nil
}
