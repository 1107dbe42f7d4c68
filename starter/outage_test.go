package starter

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
	"github.com/oncepost/oncepost/locks"
	"github.com/oncepost/oncepost/outbox"
)

// throughHole is a DSN that leads to the server through p.
func throughHole(s *testdb.Schema, p *testnet.Proxy) string {
	return strings.Replace(s.DSN, s.Server.Addr(), p.Addr(), 1)
}

// startBehindHole starts a relay that reaches the server through a proxy, and waits until it works.
func startBehindHole(t *testing.T, s *testdb.Schema, rec *recorder) (*running, *testnet.Proxy) {
	t.Helper()
	hole := testnet.New(t, s.Server.Addr)
	cfg := quick()
	cfg.callTimeout = time.Second
	relay := startRelayAt(t, s, throughHole(s, hole), rec, cfg, nil)
	enqueue(t, s, message("before"))
	rec.await(t, "a start", func(r *recorder) bool { return r.starts["before"] == 1 })
	return relay, hole
}

func TestBlackHoledSocketIsLeft(t *testing.T) { // scenario 5
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		relay, hole := startBehindHole(t, s, rec)
		hole.Set(testnet.Silent)
		enqueue(t, s, message("during"))
		relay.conds.await(t, CondDatabase, true)
		hole.Set(testnet.Pass)
		began := time.Now()
		rec.await(t, "the start after it", func(r *recorder) bool { return r.starts["during"] == 1 })
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("recovered after %s", d)
		}
		relay.conds.await(t, CondDatabase, false)
	})
}

// TestASocketThatGoesSilentInTheMiddleOfAnAnswerIsLeft: the server has sent half of a page, and its connection stays open.
func TestASocketThatGoesSilentInTheMiddleOfAnAnswerIsLeft(t *testing.T) { // scenario 5
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		relay, hole := startBehindHole(t, s, rec)
		halved := hole.HalveAnswer(8 << 10) // only a page is as long
		ms := messages("m", 50)
		for i := range ms {
			ms[i].Payload = strings.Repeat("x", 4<<10)
		}
		enqueue(t, s, ms...)
		<-halved
		began := time.Now()
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 51 })
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("recovered after %s", d)
		}
		if !relay.conds.said(CondDatabase, "read a page") {
			t.Error("nobody was told that a read was cut")
		}
		relay.conds.await(t, CondDatabase, false)
		rec.set(func(r *recorder) {
			for _, m := range ms {
				if want := `"` + m.Payload.(string) + `"`; r.payloads[m.ID] != want {
					t.Errorf("%s: %d bytes arrived, want %d", m.ID, len(r.payloads[m.ID]), len(want))
				}
			}
		})
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
	})
}

// TestReadOnlyServerIsLeftAndComesBack: half a minute under load, as a failover may last.
func TestReadOnlyServerIsLeftAndComesBack(t *testing.T) { // scenarios 9, 39
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel() // with the other server only
			s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f))
			migrated(t, s)
			dsn := s.User("SELECT, INSERT, UPDATE, DELETE") // without SUPER: read_only binds it
			rec := newRecorder()
			relay := startRelayAt(t, s, dsn, rec, quick(), nil)
			load := startLoad(t, openDSN(t, dsn))
			rec.await(t, "100 starts", func(r *recorder) bool { return len(r.starts) >= 100 })
			setReadOnly(t, s, f, true)
			time.Sleep(30 * time.Second) // the outage itself
			relay.conds.await(t, CondDatabase, true)
			if !relay.conds.said(CondDatabase, "read-only") {
				t.Error("nobody was told that the server is read-only")
			}
			before := rec.total()
			setReadOnly(t, s, f, false)
			relay.conds.await(t, CondDatabase, false)
			rec.await(t, "100 starts more", func(r *recorder) bool { return len(r.starts) >= before+100 })
			committed := load()
			rec.await(t, "all that was committed", func(r *recorder) bool {
				return !slices.ContainsFunc(committed, func(id string) bool { return r.starts[id] == 0 })
			})
			testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
			if n := len(failedRows(t, s)); n != 0 {
				t.Errorf("%d messages were failed", n)
			}
		})
	}
}

func setReadOnly(t *testing.T, s *testdb.Schema, f mysqlserver.Flavour, on bool) {
	t.Helper()
	names := []string{"read_only"}
	if f == mysqlserver.MySQL { // super_read_only sets read_only as well, and leaves it set
		names = []string{"super_read_only", "read_only"}
	}
	for _, name := range names {
		testdb.Exec(t, s.DB, fmt.Sprintf("SET GLOBAL %s = %t", name, on))
	}
}

// startLoad enqueues, four at a time, whatever comes. It returns how to stop it, and to get the IDs that were committed.
func startLoad(t *testing.T, db *sql.DB) (stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	var producers sync.WaitGroup
	var mu sync.Mutex
	var committed []string
	for p := range 4 {
		producers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id, err := outbox.Enqueue(ctx, db, message(fmt.Sprintf("load:%d:%06d", p, i)))
				if err == nil {
					mu.Lock()
					committed = append(committed, id)
					mu.Unlock()
				}
				sleep(ctx, 5*time.Millisecond) // refused while the server is read-only
			}
		})
	}
	stop = func() []string {
		cancel()
		producers.Wait()
		return committed
	}
	t.Cleanup(func() { stop() })
	return stop
}

func TestNothingIsHeldDuringAStart(t *testing.T) { // scenario 7
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		var release func()
		rec.answer, release = answerHeld(t)
		relay := startRelay(t, s, rec, quick())
		ms := messages("m", 50)
		ms[0].Payload = strings.Repeat("x", 100_000) // a large one is read on a connection of its own, given back
		enqueue(t, s, ms...)
		testdb.Eventually(t, "50 hanging starts", func() bool { return relay.Stats().InFlight == 50 })
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			noneOpen(t, s)
		}
		// Beside the sessions there is at most a look at the remembered namespace, for a moment.
		testdb.Eventually(t, "only the relay's sessions are in use", func() bool { return relay.db.Stats().InUse == 2+deleters })
		if n := relay.db.Stats().InUse; n > 3+deleters {
			t.Errorf("%d connections are in use", n)
		}
		release()
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 50 })
	})
}

// noneOpen sees to it that no transaction in the test's database stays open. Reads are transactions too, for a moment; the server's
// clock counts whole seconds here. (It may still have one of another test that it has ended. And MariaDB shows the very first read of a
// table, which has long been answered and in which nothing was begun, as one that runs.)
func noneOpen(t *testing.T, s *testdb.Schema) {
	t.Helper()
	open := testdb.Column[string](t, s.DB, `SELECT CONCAT_WS(' ', p.id, p.command, t.trx_state, t.trx_started, t.trx_query)
 FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
 WHERE p.db = ? AND t.trx_autocommit_non_locking = 0 AND t.trx_started < NOW() - INTERVAL 1 SECOND`, s.Name)
	if len(open) > 0 {
		t.Fatalf("transactions are open while starts hang: %q", open)
	}
}

// TestNothingIsHeldWhileStartsTimeOut: every start hangs until its deadline, again and again.
func TestNothingIsHeldWhileStartsTimeOut(t *testing.T) { // scenario 7
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		var hangs atomic.Bool
		hangs.Store(true)
		rec := newRecorder()
		rec.answer = func(ctx context.Context, _ *outbox.Row, _ int) Outcome {
			if !hangs.Load() {
				return Outcome{}
			}
			<-ctx.Done()
			return Outcome{Class: Away, Reason: ctx.Err().Error()}
		}
		cfg := quick()
		cfg.StartTimeout = 3 * time.Second
		relay := startRelay(t, s, rec, cfg)
		ms := messages("m", 50)
		ms[0].Payload = strings.Repeat("x", 100_000) // a large one is read on a connection of its own, given back
		enqueue(t, s, ms...)
		testdb.Eventually(t, "50 hanging starts", func() bool { return relay.Stats().InFlight == 50 })
		free := time.Now() // when only the relay's own sessions were in use
		for relay.Stats().Retried < 90 {
			noneOpen(t, s)
			if relay.db.Stats().InUse <= 2+deleters {
				free = time.Now()
			}
			if time.Since(free) > time.Second {
				t.Fatalf("%d connections are in use while starts hang", relay.db.Stats().InUse)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if n := pending(t, s); n != 50 || len(failedRows(t, s)) != 0 {
			t.Errorf("%d rows wait and %d failed, want 50 and 0", n, len(failedRows(t, s)))
		}
		hangs.Store(false)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 50 })
	})
}

func TestStopDrains(t *testing.T) { // scenario 6
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		relay, rec, release := startHeld(t, s, 40)
		stopped := make(chan error, 1)
		go func() { stopped <- relay.stop() }()
		testdb.Eventually(t, "the stop has begun", func() bool { return relay.stopping.Load() })
		enqueue(t, s, message("too-late"))
		for range 20 { // it keeps its locks until all is drained
			for shard := range outbox.Shards {
				if name := locks.Name(s.Name, fmt.Sprintf("shard %02d", shard)); testdb.Value[int](t, s.DB, "SELECT "+locks.HeldExpr(name)) != 1 {
					t.Fatalf("the relay has given up shard %d with starts in flight", shard)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		release()
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if n := pending(t, s); n != 1 {
			t.Errorf("%d rows are left, want only the one that came too late", n)
		}
		if rec.count("too-late") != 0 {
			t.Error("a row was started after the stop began")
		}
	})
}

// TestALockedTableIsAwayUntilItIsFree: sessions open while somebody has locked the table, and the relay does not say that all is well then.
func TestALockedTableIsAwayUntilItIsFree(t *testing.T) { // scenario 5
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		cfg := quick()
		cfg.callTimeout = time.Second
		relay := startRelay(t, s, rec, cfg)
		enqueue(t, s, message("before"))
		rec.await(t, "a start", func(r *recorder) bool { return r.starts["before"] == 1 })
		lock := testdb.Conn(t, s.DB, "LOCK TABLES outbox_messages WRITE")
		relay.conds.await(t, CondDatabase, true)
		terms := map[int]bool{}
		testdb.Eventually(t, "three terms that wait for the table", func() bool {
			terms[testdb.Value[int](t, s.DB, "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE '%metadata lock%'")] = true
			delete(terms, 0)
			return len(terms) == 3
		})
		if n, c := relay.conds.find(CondDatabase, false); n != 0 {
			t.Errorf("reported while the table is locked: %+v", c)
		}
		testdb.Exec(t, lock, "UNLOCK TABLES")
		relay.conds.await(t, CondDatabase, false)
		enqueue(t, s, message("after"))
		rec.await(t, "the start after it", func(r *recorder) bool { return r.starts["after"] == 1 })
	})
}

// TestStopInTheMiddleOfAReadDrains: the read is cut short, which is no failure of the session.
func TestStopInTheMiddleOfAReadDrains(t *testing.T) { // scenario 6
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		relay, rec, release := startHeld(t, s, 40)
		lock := testdb.Conn(t, s.DB, "LOCK TABLES outbox_messages WRITE") // reads hang
		testdb.Eventually(t, "a read that hangs", func() bool {
			return testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE '%metadata lock%'") > 0
		})
		stopped := make(chan error, 1)
		go func() { stopped <- relay.stop() }()
		testdb.Eventually(t, "the stop has begun", func() bool { return relay.stopping.Load() })
		release()
		testdb.Exec(t, lock, "UNLOCK TABLES")
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if n := pending(t, s); n != 0 || rec.total() != 40 {
			t.Errorf("%d rows are left and %d have started, want 0 and 40", n, rec.total())
		}
		if n, c := relay.conds.find(CondDatabase, true); n != 0 {
			t.Errorf("reported: %+v", c)
		}
	})
}

func TestStopEndsWithinItsGrace(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = func(ctx context.Context, _ *outbox.Row, _ int) Outcome {
			<-ctx.Done()
			return Outcome{Class: Away, Reason: ctx.Err().Error()}
		}
		cfg := quick()
		cfg.Grace = 200 * time.Millisecond
		cfg.StartTimeout = time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		relay, err := New(openDSN(t, s.DSN), rec, cfg)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- relay.Run(ctx) }()
		enqueue(t, s, message("hangs"))
		testdb.Eventually(t, "a start in flight", func() bool { return relay.Stats().InFlight == 1 })
		began := time.Now()
		cancel()
		err = <-done
		if err == nil || !strings.Contains(err.Error(), "grace") {
			t.Errorf("Run returned %v, want an error about the grace period", err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("stopped after %s", d)
		}
		if n := pending(t, s); n != 1 {
			t.Errorf("%d rows are left, want 1", n)
		}
	})
}

func TestLockedRowsAreSkipped(t *testing.T) { // scenario 37
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		tx := hold(t, s, enqueue(t, s, message("held"))...)
		rec := newRecorder()
		startRelay(t, s, rec, quick())
		enqueue(t, s, messages("m", 500)...)
		rec.await(t, "all", func(r *recorder) bool { return len(r.starts) == 501 })
		testdb.Eventually(t, "only the held row left", func() bool { return pending(t, s) == 1 })
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		testdb.Eventually(t, "its delete", func() bool { return pending(t, s) == 0 })
		if rec.count("held") != 1 {
			t.Errorf("the held row was started %d times", rec.count("held"))
		}
	})
}
