package main

import (
	"fmt"
	"sync"

	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

type expressCmd struct {
	Rows int `default:"100000"`
}

// Run commits one priority-1 row while a backlog of priority 5 is being started, and counts the starts before it.
func (c *expressCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		if err := w.fill(c.Rows, 500, 5); err != nil {
			return err
		}
		var mu sync.Mutex
		started, at, seen := 0, 0, -1
		r, stop, err := w.relay(noop{started: func(row *outbox.Row) {
			mu.Lock()
			defer mu.Unlock()
			started++
			if row.Priority == 1 {
				seen = started
			}
		}}, starter.Config{})
		if err != nil {
			return err
		}
		err = until(w.ctx, func() bool { return r.Stats().Started > int64(c.Rows/10) })
		if err == nil {
			_, err = outbox.Enqueue(w.ctx, w.db, outbox.Message{EventType: "welcome", Payload: 1, Priority: 1})
			mu.Lock()
			at = started
			mu.Unlock()
		}
		if err == nil {
			err = until(w.ctx, func() bool { mu.Lock(); defer mu.Unlock(); return seen > 0 })
		}
		if err := firstError(err, stop()); err != nil {
			return err
		}
		fmt.Printf("%s express: a priority-1 row committed behind %d of priority 5 was start number %d after its commit\n", w.name, c.Rows, seen-at)
		return nil
	})
}
