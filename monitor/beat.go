package monitor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Beat is this process's row in the table processes: the sign that it lives, and what it says of itself. A process with two roles
// has one for each.
type Beat struct {
	db      *sql.DB
	id      string // 32 hexadecimal digits: bytes would stand as they are in the server's list of statements
	role    string
	version string
	every   time.Duration
	publish func() Published
	hear    func(err error)
	logger  *slog.Logger
	silent  bool // it has been said that the row cannot be written
	// wrote is when it was last written or tried, and thawed, when this process went on after a freeze. Both are by the steady clock.
	wrote, thawed time.Time
}

// BeatConfig of NewBeat. All are required but Publish.
type BeatConfig struct {
	DB      *sql.DB
	Role    string // RoleRelay, RoleWorker or RoleWatch
	Version string
	// Every is how often the row is written: Thresholds.BeatEvery.
	Every  time.Duration
	Logger *slog.Logger
	// Publish is what is written. It is called for each.
	Publish func() Published
	// Wrote hears how each write has ended: Watch.Wrote. Optional.
	Wrote func(err error)
}

// NewBeat returns a Beat that writes nothing yet.
func NewBeat(cfg BeatConfig) *Beat {
	b := &Beat{id: newID(), db: cfg.DB, role: cfg.Role, version: cfg.Version, every: cfg.Every, publish: cfg.Publish, hear: cfg.Wrote, logger: cfg.Logger}
	if b.publish == nil {
		b.publish = func() Published { return Published{} }
	}
	return b
}

// newID returns 16 random bytes in hexadecimal.
func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails (documented)
	return hex.EncodeToString(id[:])
}

const (
	beatCall    = 3 * time.Second
	farewellFor = 2 * time.Second
)

const beatSQL = `INSERT INTO processes (process_id, role, host, pid, version, state) VALUES (UNHEX(?), ?, ?, ?, ?, ?)
 ON DUPLICATE KEY UPDATE seen_at = NOW(6), state = VALUES(state)`

const farewellSQL = "DELETE FROM processes WHERE process_id = UNHEX(?)"

// Run writes the row until ctx ends, and then deletes it: who stops in order is not missed for a while first.
func (b *Beat) Run(ctx context.Context) {
	ticks := time.NewTicker(b.every)
	defer ticks.Stop()
	for {
		err := b.write(ctx)
		b.note(ctx, err)
		if b.hear != nil && ctx.Err() == nil {
			b.hear(err)
		}
		select {
		case <-ctx.Done():
			b.farewell(context.WithoutCancel(ctx))
			return
		case <-ticks.C:
		}
	}
}

func (b *Beat) write(ctx context.Context) error {
	defer b.ended(time.Now())
	state, err := json.Marshal(b.since(b.publish()))
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	ctx, cancel := context.WithTimeout(ctx, beatCall)
	defer cancel()
	if _, err := b.db.ExecContext(ctx, beatSQL, b.id, b.role, host, os.Getpid(), b.version, string(state)); err != nil {
		return fmt.Errorf("write the row of this %s in processes: %w", b.role, err)
	}
	return nil
}

// since counts a relay's silence from the end of a freeze: who was frozen did not read, and that was told as its absence.
func (b *Beat) since(p Published) Published {
	now := time.Now()
	if !b.wrote.IsZero() && now.Sub(b.wrote) > 2*b.every {
		b.thawed = now
	}
	if p.Relay != nil && !b.thawed.IsZero() {
		p.Relay.ReadAgo = min(p.Relay.ReadAgo, now.Sub(b.thawed).Seconds())
	}
	return p
}

// ended notes the end of a write. One that lasted for longer than it may was frozen in the middle.
func (b *Beat) ended(began time.Time) {
	b.wrote = time.Now()
	if b.wrote.Sub(began) > beatCall+b.every {
		b.thawed = b.wrote
	}
}

// note says once that the row cannot be written, and once that it can again.
func (b *Beat) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !b.silent:
		b.silent = true
		b.logger.Warn("other processes cannot see that this one lives; it works on, and tries again and again", "role", b.role, "error", err)
	case err == nil && b.silent:
		b.silent = false
		b.logger.Info("other processes can see again that this one lives", "role", b.role)
	}
}

func (b *Beat) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellFor)
	defer cancel()
	if _, err := b.db.ExecContext(ctx, farewellSQL, b.id); err != nil {
		b.logger.Warn("the row of this process stays, and will seem to be that of a crash", "role", b.role, "error", err)
	}
}
