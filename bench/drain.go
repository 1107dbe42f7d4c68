package main

import (
	"context"
	"database/sql"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

type drainCmd struct {
	Rows  int `default:"100000"`
	Size  int `default:"500" help:"Bytes of payload."`
	Tries int `default:"3"`
}

// Run measures, in turn and several times, the ceiling and the relay.
func (c *drainCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		var ceiling, relay float64
		for range c.Tries {
			if err := w.fill(c.Rows, c.Size, 3); err != nil {
				return err
			}
			d, err := w.bareDrain(c.Rows)
			if err != nil {
				return err
			}
			ceiling = max(ceiling, float64(c.Rows)/d.Seconds())
			if err := w.fill(c.Rows, c.Size, 3); err != nil {
				return err
			}
			if d, err = w.relayDrain(c.Rows, starter.Config{}); err != nil {
				return err
			}
			relay = max(relay, float64(c.Rows)/d.Seconds())
		}
		w.printf("drain: relay %.0f rows/s; the server's ceiling (the same reads and deletes with nothing between) %.0f; ratio %.2f; best of %d",
			relay, ceiling, relay/ceiling, c.Tries)
		return nil
	})
}

func (w *world) relayDrain(rows int, cfg starter.Config) (time.Duration, error) {
	began := time.Now()
	r, stop, err := w.relay(noop{}, cfg)
	if err != nil {
		return 0, err
	}
	err = until(w.ctx, func() bool { return r.Stats().Deleted >= int64(rows) })
	d := time.Since(began)
	return d, firstError(err, stop())
}

// bareDrain reads pages on one session and deletes on two others, with no tracking, no starts and no ownership.
func (w *world) bareDrain(rows int) (time.Duration, error) {
	keys := make(chan []outbox.Key, 8)
	began := time.Now()
	group, ctx := errgroup.WithContext(w.ctx)
	group.Go(func() error { return w.bareRead(ctx, rows, keys) })
	for range 2 {
		group.Go(func() error { return w.bareDelete(ctx, keys) })
	}
	err := group.Wait()
	return time.Since(began), err
}

// session takes a connection out of the pool, prepared as the relay's are.
func (w *world) session(ctx context.Context) (*sql.Conn, outbox.Kind, error) {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return nil, 0, err
	}
	kind, err := outbox.Prepare(ctx, conn)
	if err != nil {
		return nil, 0, firstError(err, conn.Close())
	}
	return conn, kind, nil
}

func (w *world) bareRead(ctx context.Context, rows int, keys chan<- []outbox.Key) error {
	defer close(keys)
	conn, kind, err := w.session(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	reader := outbox.Table{}.NewReader(conn, kind)
	positions := make([]outbox.Position, outbox.Shards)
	for i := range positions {
		positions[i] = outbox.Position{Shard: uint8(i), Limit: 256}
	}
	var batch []outbox.Key
	for rows > 0 {
		page, err := reader.Page(ctx, outbox.Glance{}, positions...)
		if err != nil {
			return err
		}
		rows -= len(page.Rows)
		for i := range page.Rows {
			positions[page.Rows[i].Shard].After = page.Rows[i].MessageID
			if batch = append(batch, page.Rows[i].Key); len(batch) == outbox.MaxDelete {
				keys <- batch
				batch = nil
			}
		}
	}
	if len(batch) > 0 {
		keys <- batch
	}
	return nil
}

func (w *world) bareDelete(ctx context.Context, keys <-chan []outbox.Key) error {
	conn, kind, err := w.session(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	deleter := outbox.Table{}.NewDeleter(conn, kind)
	for batch := range keys {
		if _, err := deleter.Delete(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}
