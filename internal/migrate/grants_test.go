package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/failed"
	"github.com/oncepost/oncepost/internal/ledger"
	"github.com/oncepost/oncepost/internal/serve"
	"github.com/oncepost/oncepost/internal/stops"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/monitor"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/worker"
)

var grantLine = regexp.MustCompile(`(?m)^GRANT (.+) ON app\.(\S+) TO 'oncepost_([a-z]+)'@'%';$`)

// grant is one privilege on one table, or on all ("*").
type grant struct{ privilege, table string }

func (g grant) String() string {
	if g.table == "*" {
		return g.privilege
	}
	return g.privilege + " ON " + g.table
}

// documented reads docs/grants.md: the grants of each account.
func documented(t *testing.T) map[string][]grant {
	t.Helper()
	b, err := os.ReadFile("../../docs/grants.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]grant{}
	lines := grantLine.FindAllStringSubmatch(string(b), -1)
	if n := strings.Count(string(b), "\nGRANT "); n != len(lines) {
		t.Fatalf("%d of the page's %d GRANT lines have the form that this test reads", len(lines), n)
	}
	for _, m := range lines {
		for privilege := range strings.SplitSeq(m[1], ", ") {
			all[m[3]] = append(all[m[3]], grant{privilege, m[2]})
		}
	}
	return all
}

// work is what an account does. It is run with the documented grants, and with each one left out.
var work = map[string]func(ctx context.Context, db *sql.DB) error{
	"producer": func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := outbox.Enqueue(ctx, tx, outbox.Message{EventType: "welcome", Payload: 1}); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	},
	"relay": relayWork,
	"watch": func(ctx context.Context, db *sql.DB) error {
		return errors.Join(Check(ctx, db), monitor.Check(ctx, db))
	},
	"worker":   workerWork,
	"job":      jobWork,
	"operator": operatorWork,
	"migrate":  func(ctx context.Context, db *sql.DB) error { _, err := Up(ctx, db); return err },
}

func relayWork(ctx context.Context, db *sql.DB) error {
	if err := errors.Join(Check(ctx, db), monitor.Check(ctx, db)); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	kind, err := outbox.Prepare(ctx, conn)
	if err != nil {
		return err
	}
	if _, err := kind.State(ctx, conn); err != nil {
		return err
	}
	if _, err := (outbox.Table{}).RestoreSentinels(ctx, conn); err != nil {
		return err
	}
	if err := readAndFinish(ctx, conn, kind); err != nil {
		return err
	}
	for _, query := range []string{
		"SELECT GET_LOCK('oncepost-test-grants', 0)",
		"SELECT namespace FROM outbox_binding",
		"INSERT IGNORE INTO outbox_binding (id, namespace, namespace_id) VALUES (1, 'a', 'b')",
		"INSERT INTO outbox_binding (id, namespace, namespace_id) VALUES (1, 'a', 'c') ON DUPLICATE KEY UPDATE namespace_id = 'c'",
	} {
		if _, err := conn.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// operatorWork retries one of two failed messages, discards the other, and reads what `oncepost explain` reads.
func operatorWork(ctx context.Context, db *sql.DB) error {
	rows := &failed.Rows{DB: db}
	all, _, err := failed.List(ctx, rows, nil, failed.Filter{Kind: failed.KindRow})
	if err != nil {
		return err
	}
	if len(all) != 2 {
		return fmt.Errorf("%d rows have failed, want 2", len(all))
	}
	if err := rows.Retry(ctx, all[0].FailedID, false); err != nil {
		return err
	}
	if err := rows.Discard(ctx, all[1].FailedID); err != nil {
		return err
	}
	for _, query := range []string{"SELECT state FROM sends", "SELECT cause FROM sending_stops"} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// jobWork begins a job that fails, and one that is done, which is seen then.
func jobWork(ctx context.Context, db *sql.DB) error {
	l, err := locks.New(db, locks.Config{})
	if err != nil {
		return err
	}
	failed := errors.New("failed")
	for _, want := range []error{failed, nil, nil} {
		if _, err := l.OncePer(ctx, "grants", "2026-12-01", func(context.Context) error { return want }); !errors.Is(err, want) {
			return err
		}
	}
	r := monitor.NewRecorder(db)
	if _, err := r.LockLost(ctx, "job/grants", "lost", true); err != nil {
		return err
	}
	return r.Told(ctx, "job/grants")
}

func workerWork(ctx context.Context, db *sql.DB) error {
	if err := errors.Join(Check(ctx, db), monitor.Check(ctx, db)); err != nil {
		return err
	}
	if _, err := serve.SweepOld(ctx, db); err != nil {
		return err
	}
	book, err := ledger.New(ctx, db)
	if err != nil {
		return err
	}
	c := activities.Claim{Key: activities.Key{MessageID: "a", Step: "mail"}, For: time.Minute}
	if e, err := book.Claim(ctx, c); err != nil || e.Standing != activities.StandingClaimed {
		return fmt.Errorf("claim: %+v: %w", e, err)
	}
	if err := book.Record(ctx, c.Key, c.Token, activities.Outcome{Standing: activities.StandingUnknown}); err != nil {
		return err
	}
	if e, err := book.Claim(ctx, c); err != nil || e.Standing != activities.StandingUnknown {
		return fmt.Errorf("claim again: %+v: %w", e, err)
	}
	if err := book.Settle(ctx, c.Key); err != nil {
		return err
	}
	if err := stopAndResume(ctx, stops.New(db, stops.Config{Lease: time.Microsecond})); err != nil {
		return err
	}
	return purge(ctx, db)
}

func stopAndResume(ctx context.Context, s *stops.Stops) error {
	if err := s.Stop(ctx, worker.ScopeAll, "account_paused", "paused"); err != nil {
		return err
	}
	h := worker.Holder{1}
	if lasts, err := s.Try(ctx, worker.ScopeAll, h); err != nil || lasts == 0 {
		return fmt.Errorf("try: %v: %w", lasts, err)
	}
	if err := s.Resume(ctx, worker.ScopeAll, h); err != nil {
		return err
	}
	left, err := s.Standing(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left: %v", left)
	}
	return err
}

// forgotten is a Keeper that knows no workflow.
type forgotten struct{}

func (forgotten) Retention(context.Context) (time.Duration, error) { return 0, nil }
func (forgotten) Known(context.Context, string) (bool, error)      { return false, nil }

// purge lets a row grow old, and deletes it.
func purge(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "UPDATE sends SET created_at = '2020-01-01', expires_at = '2020-01-01' WHERE message_id = 'a'"); err != nil {
		return err
	}
	n, err := ledger.Purge{DB: db, Keeper: forgotten{}}.Round(ctx)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows purged", n)
	}
	return err
}

// readAndFinish moves the first message to outbox_failed, loads the last and deletes the others.
func readAndFinish(ctx context.Context, conn *sql.Conn, kind outbox.Kind) error {
	var positions []outbox.Position
	for shard := range outbox.Shards {
		positions = append(positions, outbox.Position{Shard: uint8(shard), Limit: 10})
	}
	page, err := outbox.Table{}.NewReader(conn, kind).Page(ctx, outbox.Glance{}, positions...)
	if err != nil {
		return err
	}
	if len(page.Rows) < 3 {
		return fmt.Errorf("%d rows, want 3", len(page.Rows))
	}
	deleter := outbox.Table{}.NewDeleter(conn, kind)
	if moved, err := deleter.MoveToFailed(ctx, page.Rows[0].Key, outbox.ReasonNeverStarts, "test"); err != nil || !moved {
		return fmt.Errorf("moved=%v: %w", moved, err)
	}
	if err := (outbox.Table{}).Load(ctx, conn, &page.Rows[2]); err != nil {
		return err
	}
	var keys []outbox.Key
	for _, row := range page.Rows[1:] {
		keys = append(keys, row.Key)
	}
	deleted, err := deleter.Delete(ctx, keys)
	if err == nil && len(deleted.Locked) > 0 {
		err = fmt.Errorf("locked: %v", deleted.Locked)
	}
	return err
}

func TestDocumentedGrantsSufficeAndAreNeeded(t *testing.T) {
	all := documented(t)
	if len(all) != len(work) {
		t.Fatalf("the page has %d accounts, want %d", len(all), len(work))
	}
	for account, grants := range all {
		t.Run(account, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
				if err := tryGrants(t, s, account, grants); err != nil {
					t.Errorf("with the documented grants: %v", err)
				}
				for i, left := range grants {
					fewer := slices.Delete(slices.Clone(grants), i, i+1)
					if err := tryGrants(t, s, account, fewer); err == nil {
						t.Errorf("%s is not needed", left)
					}
				}
			})
		})
	}
}

// tryGrants does an account's work under grants, in a database with a few messages and without sentinels.
func tryGrants(t *testing.T, s *testdb.Schema, account string, grants []grant) error {
	t.Helper()
	fresh := testdb.NewSchema(t, s.Flavour)
	if account != "migrate" {
		up(t, fresh.DB)
		testdb.Exec(t, fresh.DB, "TRUNCATE TABLE outbox_messages")
		for range 3 {
			testdb.Exec(t, fresh.DB, plainInsert)
		}
		for _, id := range []string{"failed-1", "failed-2"} {
			testdb.Exec(t, fresh.DB, `INSERT INTO outbox_failed (message_id, event_type, payload, priority, reason, detail)
 VALUES (?, 'welcome', '{}', 3, 'never_starts', '')`, id)
		}
	}
	var list []string
	for _, g := range grants {
		list = append(list, g.String())
	}
	return work[account](t.Context(), testdb.Open(t, fresh.User(list...)))
}
