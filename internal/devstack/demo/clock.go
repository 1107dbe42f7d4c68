package demo

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// databaseNow is the database's time. It is the clock that decides when a message is due.
func databaseNow(ctx context.Context, db *sql.DB) (time.Time, error) {
	var micros int64
	err := db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&micros)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the database's time: %w", err)
	}
	return time.UnixMicro(micros).UTC(), nil
}

// clockAhead is how far the database's clock is ahead of this process's, to within the quickest of a few round trips.
func clockAhead(ctx context.Context, db *sql.DB) (ahead time.Duration, err error) {
	best := time.Duration(-1)
	for range 5 {
		before := time.Now()
		now, err := databaseNow(ctx, db)
		if err != nil {
			return 0, err
		}
		if trip := time.Since(before); best < 0 || trip < best {
			best, ahead = trip, now.Sub(before.Round(0)) // wall clocks on both sides
		}
	}
	return ahead, nil
}

// poll asks done until it says so, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	const every = 50 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
