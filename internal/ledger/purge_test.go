package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// desk is a Keeper that notes whom it is asked for.
type desk struct {
	retention time.Duration
	known     map[string]bool
	fails     error
	asked     []string
}

func (d *desk) Retention(context.Context) (time.Duration, error) { return d.retention, nil }

func (d *desk) Known(_ context.Context, id string) (bool, error) {
	d.asked = append(d.asked, id)
	return d.known[id], d.fails
}

// age makes a done row that is so many days old.
func (b bench) age(id string, days int, step string) {
	b.t.Helper()
	c := try(0)
	c.MessageID, c.Step = id, step
	b.record(b.want(c, claimed), done)
	testdb.Exec(b.t, b.s.DB, "UPDATE sends SET created_at = NOW(6) - INTERVAL ? DAY, expires_at = created_at WHERE message_id = ? AND step = ?", days, []byte(id), step)
}

func (b bench) left() []string {
	b.t.Helper()
	return testdb.Column[string](b.t, b.s.DB, "SELECT CONCAT(message_id, ' ', step) FROM sends ORDER BY message_id, step")
}

func TestPurge(t *testing.T) {
	for _, c := range []struct {
		retention time.Duration
		left      []string
	}{
		{72 * time.Hour, []string{"known mail", "old young", "young mail"}},
		{100 * 24 * time.Hour, []string{"known mail", "ninety mail", "old young", "young mail"}}, // a reset is possible until day 100, and 30 days more
	} {
		t.Run(c.retention.String(), func(t *testing.T) {
			each(t, func(t *testing.T, b bench) {
				b.age("young", 89, "mail")
				b.age("ninety", 91, "mail")
				b.age("old", 131, "mail")
				b.age("old", 131, "reminder")
				b.age("old", 10, "young")
				b.age("known", 400, "mail")
				d := &desk{retention: c.retention, known: map[string]bool{"known": true}}
				n, err := Purge{DB: b.pool, Keeper: d}.Round(t.Context())
				if got := b.left(); err != nil || !slices.Equal(got, c.left) || int(n) != 6-len(got) {
					t.Errorf("%d deleted, left %v: %v", n, got, err)
				}
				if slices.Contains(d.asked, "young") {
					t.Error("asked for a young one")
				}
				// Once Temporal has forgotten it too, it is kept for another 90 days: the same ID may come again.
				d.known = nil
				if n, err := (Purge{DB: b.pool, Keeper: d}).Round(t.Context()); err != nil || n != 0 {
					t.Errorf("%d deleted in the next round: %v", n, err)
				}
			})
		})
	}
}

// More than a batch, many of the same microsecond, and known ones among them: each is looked at, once.
func TestPurgeGoesThroughAll(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		d := &desk{known: map[string]bool{}}
		var values []string
		for i := range 2*purgeBatch + 7 {
			id := fmt.Sprintf("m%04d", i)
			d.known[id] = i%2 == 0
			values = append(values, fmt.Sprintf("('%s', 'mail', REPEAT('r', 32), REPEAT('c', 32), 0, 'done', REPEAT('t', 16), '2020-01-01 00:00:0%d', '2020-01-01')", id, i/150))
		}
		testdb.Exec(t, b.s.DB, "INSERT INTO sends (message_id, step, recipient, content, generation, state, token, created_at, expires_at) VALUES "+strings.Join(values, ","))
		n, err := Purge{DB: b.pool, Keeper: d}.Round(t.Context())
		if err != nil || n != purgeBatch+3 || len(b.left()) != purgeBatch+4 {
			t.Errorf("%d deleted, %d left: %v", n, len(b.left()), err)
		}
		slices.Sort(d.asked)
		if len(slices.Compact(d.asked)) != len(values) {
			t.Errorf("asked for %d", len(slices.Compact(d.asked)))
		}
	})
}

// Where Temporal cannot say, nothing goes.
func TestPurgeLeavesWhatNobodyKnows(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		b.age("old", 200, "mail")
		d := &desk{fails: errors.New("no frontend")}
		if _, err := (Purge{DB: b.pool, Keeper: d}).Round(t.Context()); !errors.Is(err, d.fails) {
			t.Error(err)
		}
		if got := b.left(); len(got) != 1 {
			t.Errorf("left %v", got)
		}
	})
}
