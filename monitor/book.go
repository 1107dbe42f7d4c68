package monitor

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// book is the table ops_conditions: by it one process of all tells people of a condition, and one that it is over. Who tells has
// it to itself for a while, and another takes over where it dies in the middle of it.
type book struct {
	db *sql.DB
	id string // this process's, in hexadecimal
}

const (
	bookCall = 3 * time.Second
	// tellingFor is longer than an alert takes.
	tellingFor = 30 * time.Second
)

const raiseSQL = `INSERT INTO ops_conditions (name, subject, detail, since, teller, telling_ends_at)
 VALUES (?, ?, ?, NOW(6) - INTERVAL ? MICROSECOND, UNHEX(?), NOW(6) + INTERVAL ? SECOND) ON DUPLICATE KEY UPDATE name = name`

// raise makes the condition's row, and reports whether it is this process that made it and must tell.
func (b *book) raise(ctx context.Context, c Condition) (mine bool, err error) {
	return b.exec(ctx, raiseSQL, c.Name, cut(c.Subject, maxSubject), cut(c.Detail, maxDetail), int64(c.For*1e6), b.id, int64(tellingFor.Seconds()))
}

const insteadSQL = `UPDATE ops_conditions SET teller = UNHEX(?), telling_ends_at = NOW(6) + INTERVAL ? SECOND
 WHERE name = ? AND subject = ? AND (told_at IS NOT NULL) = ? AND (telling_ends_at IS NULL OR telling_ends_at <= NOW(6))`

// instead takes the telling of a condition whose teller has not managed it or, where people were told, that it is over.
func (b *book) instead(ctx context.Context, k key, told bool) (mine bool, err error) {
	return b.exec(ctx, insteadSQL, b.id, int64(tellingFor.Seconds()), k.name, k.subject, told)
}

const toldSQL = "UPDATE ops_conditions SET told_at = NOW(6), telling_ends_at = NULL WHERE name = ? AND subject = ? AND teller = UNHEX(?)"

// told notes that people know.
func (b *book) told(ctx context.Context, k key) error {
	_, err := b.exec(ctx, toldSQL, k.name, k.subject, b.id)
	return err
}

// Something that has happened again meanwhile is not over.
const dropSQL = `DELETE FROM ops_conditions WHERE name = ? AND subject = ? AND teller = UNHEX(?) AND (holds_until IS NULL OR holds_until <= NOW(6))`

// drop deletes the row of a condition that is over.
func (b *book) drop(ctx context.Context, k key) error {
	_, err := b.exec(ctx, dropSQL, k.name, k.subject, b.id)
	return err
}

// What counts no more begins anew. Assignments run from left to right, so that holds_until is still the old one in the first.
const recordSQL = `INSERT INTO ops_conditions (name, subject, detail, teller, telling_ends_at, holds_until)
 VALUES (?, ?, ?, UNHEX(?), NOW(6) + INTERVAL ? SECOND, NOW(6) + INTERVAL ? SECOND)
 ON DUPLICATE KEY UPDATE detail = VALUES(detail), since = IF(holds_until <= NOW(6), NOW(6), since),
 teller = IF(holds_until <= NOW(6), VALUES(teller), teller), told_at = IF(holds_until <= NOW(6), NULL, told_at),
 telling_ends_at = IF(holds_until <= NOW(6), VALUES(telling_ends_at), telling_ends_at), holds_until = VALUES(holds_until)`

// record writes down something that has happened. It reports whether it is this process that must tell: somebody else has, or will,
// where the same has happened a short while ago. Who cannot tell leaves it to others.
func (b *book) record(ctx context.Context, k key, detail string, counts time.Duration, tells bool) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bookCall)
	defer cancel()
	keep := tellingFor
	if !tells {
		keep = 0
	}
	subject := cut(k.subject, maxSubject)
	if _, err := b.db.ExecContext(ctx, recordSQL, k.name, subject, cut(detail, maxDetail), b.id, int64(keep.Seconds()), int64(counts.Seconds())); err != nil {
		return false, fmt.Errorf("write ops_conditions: %w", err)
	}
	err = b.db.QueryRowContext(ctx, "SELECT teller = UNHEX(?) AND told_at IS NULL FROM ops_conditions WHERE name = ? AND subject = ?", b.id, k.name, subject).Scan(&mine)
	if err != nil {
		return false, fmt.Errorf("read ops_conditions: %w", err)
	}
	return mine && tells, nil
}

func (b *book) exec(ctx context.Context, query string, args ...any) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bookCall)
	defer cancel()
	r, err := b.db.ExecContext(ctx, query, args...)
	if err != nil {
		return false, fmt.Errorf("write ops_conditions: %w", err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// Characters that the table's columns take.
const (
	maxSubject = 191
	maxDetail  = 2048
)

func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?") // a column takes no other
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}
