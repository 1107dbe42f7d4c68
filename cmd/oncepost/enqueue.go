package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
)

type enqueueCmd struct {
	config.MySQL `embed:""`

	EventType string            `arg:"" help:"The event type, which is the workflow type: welcome."`
	Payload   string            `name:"payload" env:"ONCEPOST_ENQUEUE_PAYLOAD" required:"" placeholder:"JSON" help:"The payload; @FILE reads a file, - standard input, in both cases without a last line break. It is stored byte for byte."`
	ID        string            `name:"id" env:"ONCEPOST_ENQUEUE_ID" help:"The message ID. Default: a new UUID."`
	Headers   map[string]string `name:"header" env:"ONCEPOST_ENQUEUE_HEADERS" mapsep:"none" placeholder:"NAME=VALUE" help:"A header; may be repeated."`
	DeliverAt time.Time         `name:"deliver-at" env:"ONCEPOST_ENQUEUE_DELIVER_AT" placeholder:"RFC3339" xor:"when" help:"Not before this time: 2030-01-31T09:00:00+09:00."`
	Delay     time.Duration     `name:"delay" env:"ONCEPOST_ENQUEUE_DELAY" xor:"when" help:"Not before so long from now: 90m."`
	Priority  int               `name:"priority" env:"ONCEPOST_ENQUEUE_PRIORITY" default:"3" help:"1 (first) to 5."`
}

func (c *enqueueCmd) Run(a *app) error {
	if c.Delay < 0 {
		return config.UsageError{Err: errors.New("--delay must not be negative")}
	}
	payload, err := c.read(a.stdin)
	if err != nil {
		return err
	}
	return a.with(c.MySQL, callTimeout, func(ctx context.Context, db *sql.DB) error { return c.write(ctx, a, db, payload) })
}

func (c *enqueueCmd) write(ctx context.Context, a *app, db *sql.DB, payload []byte) (err error) {
	m := outbox.Message{
		ID: c.ID, EventType: c.EventType, Payload: payload, Headers: c.Headers, DeliverAt: c.DeliverAt, Priority: c.Priority,
	}
	if c.Delay > 0 {
		if m.DeliverAt, err = later(ctx, db, c.Delay); err != nil {
			return err
		}
	}
	id, err := outbox.Enqueue(ctx, db, m)
	if err != nil {
		return migrate.Explain(ctx, db, err)
	}
	fmt.Fprintln(a.stdout, id)
	return nil
}

// read returns the payload. A file's last line break is not part of it.
func (c *enqueueCmd) read(stdin io.Reader) ([]byte, error) {
	var b []byte
	var err error
	switch {
	case c.Payload == "-":
		const limit = schemas.MaxPayload + 2 // with a line break, and one that is too many
		b, err = io.ReadAll(io.LimitReader(stdin, limit))
		if len(b) == limit {
			return nil, fmt.Errorf("the payload is longer than the %d bytes that a message may have", schemas.MaxPayload)
		}
	case strings.HasPrefix(c.Payload, "@"):
		b, err = os.ReadFile(c.Payload[1:])
	default:
		return []byte(c.Payload), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the payload: %w", err)
	}
	return []byte(strings.TrimSuffix(string(b), "\n")), nil
}

// later is the database's time after d: it is the database's clock that decides when a message is due.
func later(ctx context.Context, db *sql.DB, d time.Duration) (time.Time, error) {
	var micros int64
	err := db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&micros)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the database's time: %w", err)
	}
	return time.UnixMicro(micros).Add(d), nil
}
