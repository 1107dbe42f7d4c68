package failed

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func each(t *testing.T, test func(t *testing.T, s *testdb.Schema, rows *Rows)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		if _, err := migrate.Up(t.Context(), s.DB); err != nil {
			t.Fatal(err)
		}
		db, err := mysqldb.Open(mysqldb.Config{DSN: s.DSN})
		if err != nil {
			t.Fatal(err)
		}
		testdb.CloseAtEnd(t, db)
		test(t, s, &Rows{DB: db})
	})
}

// fail moves a message to outbox_failed as the relay does.
func fail(t *testing.T, s *testdb.Schema, m outbox.Message, reason, detail string) {
	t.Helper()
	if _, err := outbox.Enqueue(t.Context(), s.DB, m); err != nil {
		t.Fatal(err)
	}
	conn := testdb.Conn(t, s.DB)
	kind, err := outbox.Prepare(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	key := outbox.Key{MessageID: m.ID}
	err = conn.QueryRowContext(t.Context(), "SELECT shard, CAST(created_at AS CHAR) FROM outbox_messages WHERE message_id = ?", m.ID).
		Scan(&key.Shard, &key.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := (outbox.Table{}).NewDeleter(conn, kind).MoveToFailed(t.Context(), key, reason, detail); err != nil || !moved {
		t.Fatalf("moved=%v, %v", moved, err)
	}
}

func welcome(id string) outbox.Message {
	return outbox.Message{ID: id, EventType: "welcome", Payload: []byte(`{"email":"a@example.com"}`)}
}

func ids(t *testing.T, rows *Rows, id string) (all []int64) {
	t.Helper()
	found, err := rows.Show(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		all = append(all, r.FailedID)
	}
	return all
}

const wholeRow = `SELECT CONCAT_WS('|', message_id, event_type, HEX(payload), HEX(headers), UNIX_TIMESTAMP(deliver_at), priority) FROM `

// A retry moves a row back with every byte, in its own lane, as a new row: an old delete's created_at does not fit it.
func TestRetryKeepsEverything(t *testing.T) {
	each(t, func(t *testing.T, s *testdb.Schema, rows *Rows) {
		m := outbox.Message{
			ID: `a"\b`, EventType: "welcome", Payload: []byte("{\"z\": 9007199254740993,\n \"a\":\"\U0001f469\"} "), Priority: 2,
			Headers: map[string]string{"tenant": "t1"}, DeliverAt: time.Date(2035, 10, 28, 1, 30, 0, 123456000, time.UTC),
		}
		fail(t, s, m, outbox.ReasonNeverStarts, "why")
		before := testdb.Value[string](t, s.DB, wholeRow+"outbox_failed")
		created := testdb.Value[string](t, s.DB, "SELECT created_at FROM outbox_failed")
		id := ids(t, rows, m.ID)[0]
		if err := rows.Retry(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
		if after := testdb.Value[string](t, s.DB, wholeRow+"outbox_messages WHERE message_id < '~' AND shard >= 16"); after != before {
			t.Errorf("the row changed:\n%s\n%s", before, after)
		}
		if again := testdb.Value[string](t, s.DB, "SELECT created_at FROM outbox_messages WHERE message_id < '~'"); again == created {
			t.Error("the row has its old created_at: a late delete would remove it")
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_failed"); n != 0 {
			t.Errorf("%d rows left in outbox_failed", n)
		}
		if err := rows.Retry(t.Context(), id, false); !errors.Is(err, ErrGone) {
			t.Errorf("again: %v", err)
		}
	})
}

// A retry is refused where the ID waits already, in whichever lane, and where it would be in vain; nothing is changed then.
func TestRetryRefuses(t *testing.T) {
	each(t, func(t *testing.T, s *testdb.Schema, rows *Rows) {
		for _, priority := range []int{3, 1} {
			m := welcome(fmt.Sprint("waits-", priority))
			fail(t, s, m, outbox.ReasonNeverStarts, "")
			m.Priority = priority
			if _, err := outbox.Enqueue(t.Context(), s.DB, m); err != nil {
				t.Fatal(err)
			}
			if err := rows.Retry(t.Context(), ids(t, rows, m.ID)[0], true); !errors.Is(err, ErrWaits) {
				t.Errorf("priority %d: %v", priority, err)
			}
		}
		fail(t, s, welcome("reused"), outbox.ReasonIDReused, "")
		reused := ids(t, rows, "reused")[0]
		if err := rows.Retry(t.Context(), reused, false); !errors.Is(err, ErrReused) {
			t.Error(err)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_failed"); n != 3 {
			t.Errorf("%d rows in outbox_failed, want 3", n)
		}
		if err := rows.Retry(t.Context(), reused, true); err != nil {
			t.Errorf("with force: %v", err)
		}
	})
}

// The move is one transaction: where the second half is impossible the first has not happened.
func TestRetryIsAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, s *testdb.Schema, rows *Rows) {
		fail(t, s, welcome("a"), outbox.ReasonNeverStarts, "")
		testdb.Exec(t, s.DB, "CREATE TRIGGER refuse BEFORE DELETE ON outbox_failed FOR EACH ROW SIGNAL SQLSTATE '45000'")
		if err := rows.Retry(t.Context(), ids(t, rows, "a")[0], false); err == nil {
			t.Error("no error")
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != 0 {
			t.Error("a copy is left in outbox_messages")
		}
	})
}

// Ten people retry one row: it comes back once.
func TestRetryAtTheSameTime(t *testing.T) {
	each(t, func(t *testing.T, s *testdb.Schema, rows *Rows) {
		fail(t, s, welcome("a"), outbox.ReasonNeverStarts, "")
		id := ids(t, rows, "a")[0]
		results := make(chan error)
		for range 10 {
			go func() { results <- rows.Retry(context.WithoutCancel(t.Context()), id, false) }()
		}
		done := 0
		for range 10 {
			switch err := <-results; {
			case err == nil:
				done++
			case !errors.Is(err, ErrGone):
				t.Error(err)
			}
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_messages WHERE message_id < '~'"); n != 1 || done != 1 {
			t.Errorf("%d rows, %d say so", n, done)
		}
	})
}

func TestListShowDiscard(t *testing.T) {
	each(t, func(t *testing.T, s *testdb.Schema, rows *Rows) {
		for range 2 {
			fail(t, s, welcome("twice"), outbox.ReasonNeverStarts, "refused for someone@example.com")
		}
		other := welcome("other")
		other.EventType = "other"
		other.Headers = map[string]string{"from": "x@example.com"}
		fail(t, s, other, outbox.ReasonIDReused, "")
		list := func(f Filter) string {
			t.Helper()
			f.Kind = KindRow
			all, more, err := List(t.Context(), rows, nil, f)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range all {
				got = append(got, i.MessageID)
			}
			return fmt.Sprint(got, more)
		}
		for want, f := range map[string]Filter{
			"[other twice twice] false": {}, "[other twice twice] false ": {Limit: 3}, "[other twice] true": {Limit: 2}, "[other] false": {EventType: "other"},
		} {
			if got := list(f); got != strings.TrimSpace(want) {
				t.Errorf("%+v: %s, want %s", f, got, want)
			}
		}
		if _, _, err := List(t.Context(), rows, nil, Filter{EventType: "a' OR 'b"}); err == nil {
			t.Error("a type with quotes was taken")
		}
		twice, err := rows.Show(t.Context(), "twice", false)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := rows.Show(t.Context(), "other", true)
		if err != nil {
			t.Fatal(err)
		}
		if whole[0].Payload == nil || *whole[0].Payload != string(other.Payload.([]byte)) { //nolint:forcetypeassert // set above
			t.Errorf("payload %v", whole[0].Payload)
		}
		whole[0].Payload = nil
		shown, err := json.Marshal(append(whole, twice...))
		if err != nil || len(twice) != 2 || strings.Contains(string(shown), "@") || !strings.Contains(string(shown), "refused for (address)") {
			t.Errorf("%s, %v", shown, err)
		}
		if _, err := Choose("twice", twice, 0); err == nil || !strings.Contains(err.Error(), fmt.Sprint(twice[1].FailedID)) {
			t.Errorf("which of two: %v", err)
		}
		if _, err := Choose("twice", twice, 999999); err == nil {
			t.Error("a number that is not there was taken")
		}
		chosen, err := Choose("twice", twice, twice[1].FailedID)
		if err != nil {
			t.Fatal(err)
		}
		if err := rows.Discard(t.Context(), chosen.FailedID); err != nil {
			t.Fatal(err)
		}
		if err := rows.Discard(t.Context(), chosen.FailedID); !errors.Is(err, ErrGone) {
			t.Errorf("again: %v", err)
		}
		if left := ids(t, rows, "twice"); len(left) != 1 || left[0] != twice[0].FailedID {
			t.Errorf("left %v", left)
		}
	})
}

// A producer's open transaction holds the ID: the retry gives up with words, and keeps the row.
func TestRetryWhileTheIDIsLocked(t *testing.T) {
	each(t, func(t *testing.T, s *testdb.Schema, rows *Rows) {
		fail(t, s, welcome("a"), outbox.ReasonNeverStarts, "")
		tx, err := s.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
				t.Error(err)
			}
		}()
		if _, err := outbox.Enqueue(t.Context(), tx, welcome("a")); err != nil {
			t.Fatal(err)
		}
		if err := rows.Retry(t.Context(), ids(t, rows, "a")[0], false); err == nil || !strings.Contains(err.Error(), "open transaction holds this ID") {
			t.Error(err)
		}
		if len(ids(t, rows, "a")) != 1 {
			t.Error("the row is gone")
		}
	})
}
