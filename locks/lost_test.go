package locks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
)

// untilLost runs a function under a lock until its context ends, and checks how it ended and what was told.
func untilLost(t *testing.T, l *Locker, r *told, cut func(), points ...string) {
	t.Helper()
	err := l.With(t.Context(), "a", 0, func(ctx context.Context) error {
		cut()
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Error("the function's context does not end")
		}
		var lost *LostError
		if !errors.As(context.Cause(ctx), &lost) || !slices.Equal(lost.Keys, []string{"a"}) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return errWork
	})
	if err != errWork { //nolint:errorlint // the very error
		t.Errorf("error %v", err)
	}
	if got := r.points(); !slices.Equal(got, points) {
		t.Errorf("reports %+v, want %v", r.all, points)
	}
}

// Somebody ends the session.
func TestKilledHolder(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, leastTimeout)
		other, _ := locker(t, testdb.Open(t, s.DSN), 0)
		untilLost(t, l, r, func() {
			id := other.refused(t.Context(), t, "a", 0).Holder
			testdb.Exec(t, s.DB, "KILL "+itoa(id))
		}, PointConnectionGone)
		other.with(t, "a", func(context.Context) {})
	})
}

// Somebody releases the lock on its own session: a proxy that gives one session to two clients does the like.
func TestALockThatIsNotOursAnyMore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, leastTimeout)
		err := l.With(t.Context(), "a", 0, func(ctx context.Context) error {
			h, _ := l.holding(ctx)
			h.mu.Lock()
			testdb.Exec(t, h.s.conn, "DO RELEASE_LOCK('"+Name(s.Name, "a")+"')")
			h.mu.Unlock()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		var lost *LostError
		if !errors.As(err, &lost) || !slices.Equal(r.points(), []string{PointLockLost}) {
			t.Errorf("%v, reports %+v", err, r.all)
		}
	})
}

// The keep-alive keeps a session that the server would end for silence. (scenario 32)
func TestAShortWaitTimeout(t *testing.T) {
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		cfg, err := mysql.ParseDSN(s.DSN)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Params = map[string]string{"wait_timeout": "5"}
		l, r := locker(t, testdb.Open(t, cfg.FormatDSN()), leastTimeout)
		other, _ := locker(t, s.DB, 0)
		l.with(t, "a", func(ctx context.Context) {
			for end := time.Now().Add(7 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
				other.refused(t.Context(), t, "a", 0)
			}
			if ctx.Err() != nil {
				t.Error(context.Cause(ctx))
			}
		})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// proxied returns a Locker behind a proxy that can fail as a network does.
func proxied(t *testing.T, s *testdb.Schema) (*Locker, *told, *testnet.Proxy) {
	t.Helper()
	cfg, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	target := cfg.Addr
	proxy := testnet.New(t, func() string { return target })
	cfg.Addr, cfg.Timeout = proxy.Addr(), time.Second
	l, r := locker(t, testdb.Open(t, cfg.FormatDSN()), leastTimeout)
	return l, r, proxy
}

// The network goes silent: the function's context ends before the server frees the lock, which it does in time.
func TestACutNetwork(t *testing.T) {
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r, proxy := proxied(t, s)
		other, _ := locker(t, s.DB, 0)
		waited := make(chan time.Time, 1)
		var cut, ended time.Time
		err := l.With(t.Context(), "a", 0, func(ctx context.Context) error {
			time.Sleep(2 * guardAfter)
			proxy.Set(testnet.Silent)
			cut = time.Now()
			go func() {
				if err := other.With(t.Context(), "a", -1, func(context.Context) error { waited <- time.Now(); return nil }); err != nil {
					t.Error(err)
				}
			}()
			<-ctx.Done()
			ended = time.Now()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		free := <-waited
		if ended.After(free) || free.Sub(cut) > leastTimeout+2*time.Second {
			t.Errorf("the context ended %s after the cut, the lock was free after %s", ended.Sub(cut), free.Sub(cut))
		}
		if got := r.points(); !slices.Equal(got, []string{PointConnectionGone, PointSessionNotEnded}) {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// The server restarts.
func TestServerRestart(t *testing.T) {
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			server := testdb.OwnServer(t, f)
			s := testdb.NewSchemaOn(t, server)
			l, r := locker(t, s.DB, leastTimeout)
			untilLost(t, l, r, func() {
				if err := server.Kill(); err != nil {
					t.Error(err)
				}
				testdb.Restart(t, server)
			}, PointConnectionGone)
			l.with(t, "a", func(context.Context) {})
		})
	}
}

// A proxy that swaps the session: another answers, and the lock is still the first one's.
func TestASwappedSession(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		_, f, _ := newFaulty(t, s)
		db := sql.OpenDB(f)
		testdb.CloseAtEnd(t, db)
		l, r := locker(t, db, leastTimeout)
		untilLost(t, l, r, func() {
			id := testdb.Value[int64](t, s.DB, "SELECT IS_USED_LOCK(?)", Name(s.Name, "a"))
			f.set(false, fault{words: "SELECT CONNECTION_ID(), ", values: []driver.Value{id + 1, id}})
		}, PointLockLost)
	})
}

// The first answer is lost on the way, and the server has given the lock: its session is found by its mark, and ended.
func TestTheFirstAnswerIsLost(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, f, r := newFaulty(t, s)
		f.set(true, fault{words: "GET_LOCK('" + Name(s.Name, "a"), after: errServer})
		if err := l.With(t.Context(), "a", 0, func(context.Context) error { t.Error("it runs"); return nil }); err == nil {
			t.Error("no error")
		}
		f.set(false)
		other, _ := locker(t, s.DB, 0)
		other.with(t, "a", func(context.Context) {})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// A server that never answers the first statement holds nobody up for ever, whatever the caller's context.
func TestASilentServer(t *testing.T) {
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, _, proxy := proxied(t, s)
		l.with(t, "a", func(context.Context) {})
		proxy.Set(testnet.Silent)
		began := time.Now()
		err := l.With(context.Background(), "a", -1, func(context.Context) error { t.Error("it runs"); return nil })
		if !errors.Is(err, errSilent) || time.Since(began) > 20*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
