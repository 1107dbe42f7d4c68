package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// locker returns a Locker and what it reports.
func locker(t *testing.T, db *sql.DB, timeout time.Duration) (*Locker, *told) {
	t.Helper()
	r := &told{}
	l, err := New(db, Config{Timeout: timeout, Report: r.report})
	if err != nil {
		t.Fatal(err)
	}
	return l, r
}

// with runs fn under a lock; both must succeed.
func (l *Locker) with(t *testing.T, key string, fn func(ctx context.Context)) {
	t.Helper()
	ran := false
	err := l.With(t.Context(), key, 0, func(ctx context.Context) error { ran = true; fn(ctx); return nil })
	if err != nil || !ran {
		t.Errorf("%q: ran %v, %v", key, ran, err)
	}
}

// refused sees to it that a lock is not to be had.
func (l *Locker) refused(ctx context.Context, t *testing.T, key string, wait time.Duration) *NotAcquiredError {
	t.Helper()
	return l.refusedAll(ctx, t, wait, key)
}

func (l *Locker) refusedAll(ctx context.Context, t *testing.T, wait time.Duration, keys ...string) *NotAcquiredError {
	t.Helper()
	err := l.WithAll(ctx, keys, wait, func(context.Context) error { t.Errorf("%q: it runs", keys); return nil })
	var no *NotAcquiredError
	if !errors.As(err, &no) {
		t.Fatalf("%q: %v, want a NotAcquiredError", keys, err)
	}
	return no
}

func TestWith(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		first, r := locker(t, s.DB, 0)
		second, _ := locker(t, s.DB, 0)
		err := first.With(t.Context(), "a", 0, func(context.Context) error {
			holder := testdb.Value[int64](t, s.DB, "SELECT IS_USED_LOCK(?)", Name(s.Name, "a"))
			no := second.refused(t.Context(), t, "a", 0)
			if no.Holder != holder || no.Key != "a" || no.Own || no.Deadlock || !strings.Contains(no.Error(), fmt.Sprintf("held by session %d", holder)) {
				t.Errorf("%+v, want holder %d", no, holder)
			}
			second.with(t, "b", func(context.Context) {})
			return errWork
		})
		if err != errWork { //nolint:errorlint // the very error
			t.Errorf("error %v", err)
		}
		second.with(t, "a", func(context.Context) {})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// The connection goes back to the pool as it was, however long the function took.
func TestTheConnectionGoesBackAsItWas(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		s.DB.SetMaxOpenConns(1)
		l, r := locker(t, s.DB, 0)
		state := func() string {
			return testdb.Value[string](t, s.DB, "SELECT CONCAT(CONNECTION_ID(), ' ', @@wait_timeout)")
		}
		before := state()
		for what, fn := range map[string]func(ctx context.Context){
			"a short function": func(context.Context) {}, "a long one": func(context.Context) { time.Sleep(3 * guardAfter) },
			"a long one with another lock in it": func(ctx context.Context) {
				time.Sleep(3 * guardAfter)
				if err := l.With(ctx, "b", 0, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			},
		} {
			l.with(t, "a", fn)
			if after := state(); after != before {
				t.Errorf("after %s: session %s, was %s", what, after, before)
			}
		}
		other, _ := locker(t, testdb.Open(t, s.DSN), 0)
		other.with(t, "a", func(context.Context) {
			l.refused(t.Context(), t, "a", 1500*time.Millisecond) // the server has been told the time-out meanwhile
		})
		if after := state(); after != before {
			t.Errorf("after a refusal: session %s, was %s", after, before)
		}
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// A thousand acquisitions that fail leave the pool as it was. (scenario 32)
func TestAThousandRefusals(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		holder, _ := locker(t, testdb.Open(t, s.DSN), 0)
		l, r := locker(t, s.DB, 0)
		testdb.Value[int](t, s.DB, "SELECT 1")
		before := s.DB.Stats().OpenConnections
		holder.with(t, "a", func(context.Context) {
			for range 1000 {
				l.refused(t.Context(), t, "a", 0)
			}
		})
		if n := s.DB.Stats(); n.OpenConnections != before || n.InUse != 0 || len(r.all) > 0 {
			t.Errorf("%d connections, %d in use, reports %+v; before %d", n.OpenConnections, n.InUse, r.all, before)
		}
	})
}

func TestWaiting(t *testing.T) {
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		held, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			l.with(t, "a", func(context.Context) { close(held); <-release })
		}()
		<-held
		began := time.Now()
		if no := l.refused(t.Context(), t, "a", 100*time.Millisecond); no.Waited < 900*time.Millisecond || time.Since(began) > 10*time.Second {
			t.Errorf("waited %s, want a whole second", no.Waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := l.With(ctx, "a", -1, func(context.Context) error { t.Error("it runs"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*NotAcquiredError)) {
			t.Errorf("the caller's time is over: %v", err)
		}
		time.AfterFunc(1500*time.Millisecond, func() { close(release) }) // in the second of its waits
		if err := l.With(t.Context(), "a", -1, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		<-done
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// Locks within locks take one connection, and the same one twice is refused.
func TestNested(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		s.DB.SetMaxOpenConns(1)
		l, r := locker(t, s.DB, 0)
		other, _ := locker(t, testdb.Open(t, s.DSN), 0)
		var late context.Context
		l.with(t, "a", func(ctx context.Context) {
			late = ctx
			err := l.With(ctx, "b", 0, func(ctx context.Context) error {
				if no := l.refused(ctx, t, "a", time.Hour); !no.Own || !strings.Contains(no.Error(), "not re-entrant") {
					t.Errorf("%+v", no)
				}
				if err := l.WithAll(ctx, []string{"d", "c", "d"}, 0, func(context.Context) error {
					for _, key := range []string{"a", "b", "c", "d"} {
						other.refused(t.Context(), t, key, 0)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
				return errWork
			})
			if err != errWork { //nolint:errorlint // the very error
				t.Errorf("error %v", err)
			}
			other.with(t, "b", func(context.Context) {})
			other.with(t, "c", func(context.Context) {})
			other.refused(t.Context(), t, "a", 0)
			if no := l.refusedAll(ctx, t, 0, "0", "a"); no.Key != "a" {
				t.Errorf("%+v", no)
			}
			other.with(t, "0", func(context.Context) {}) // all or none
		})
		other.with(t, "a", func(context.Context) {})
		err := l.With(context.WithoutCancel(late), "b", 0, func(context.Context) error { t.Error("it runs"); return nil })
		if !errors.Is(err, errClosed) || !errors.Is(context.Cause(late), errClosed) {
			t.Errorf("a context that outlived its function: %v, its cause %v", err, context.Cause(late))
		}
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// Two that wait for each other: the server tells one of them, who gives up, and the other goes on.
func TestDeadlock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		var both, all sync.WaitGroup
		both.Add(2)
		deadlocks := make(chan bool, 2)
		for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
			all.Go(func() {
				err := l.With(t.Context(), keys[0], 0, func(ctx context.Context) error {
					both.Done()
					both.Wait()
					return l.With(ctx, keys[1], -1, func(context.Context) error { return nil })
				})
				var no *NotAcquiredError
				if errors.As(err, &no) && no.Deadlock && strings.Contains(no.Error(), "deadlock") {
					deadlocks <- true
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(deadlocks) != 1 || len(r.all) > 0 {
			t.Errorf("%d deadlocks, reports %+v", len(deadlocks), r.all)
		}
	})
}

// WithAll has one order for everybody, whatever the caller's.
func TestWithAllDoesNotDeadlock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, _ := locker(t, s.DB, 0)
		var all sync.WaitGroup
		for _, keys := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}, {"c", "a", "b"}} {
			all.Go(func() {
				for range 20 {
					if err := l.WithAll(t.Context(), keys, -1, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// A panic frees the lock, and goes on.
func TestAPanicFreesTheLock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = l.With(t.Context(), "a", 0, func(context.Context) error { panic("boom") })
		}()
		l.with(t, "a", func(context.Context) {})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// A connection of the pool that the server has ended meanwhile is nobody's trouble.
func TestAStaleConnection(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		s.DB.SetMaxOpenConns(1)
		l, r := locker(t, s.DB, 0)
		l.with(t, "a", func(context.Context) {})
		id := testdb.Value[int64](t, s.DB, "SELECT CONNECTION_ID()")
		direct := testdb.Open(t, s.DSN)
		testdb.Exec(t, direct, "KILL "+itoa(id))
		testdb.Eventually(t, "the session's end", func() bool {
			return testdb.Value[int](t, direct, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ?", id) == 0
		})
		l.with(t, "a", func(context.Context) {})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

func TestBadInput(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for what, cfg := range map[string]Config{
			"half a second": {Timeout: 500 * time.Millisecond}, "broken seconds": {Timeout: 3500 * time.Millisecond}, "negative": {Timeout: -time.Second},
		} {
			if _, err := New(s.DB, cfg); err == nil || !strings.Contains(err.Error(), "whole seconds") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := New(nil, Config{}); err == nil {
			t.Error("no pool")
		}
		l, _ := locker(t, s.DB, 0)
		for _, keys := range [][]string{nil, {""}, {"a", ""}} {
			if err := l.WithAll(t.Context(), keys, 0, func(context.Context) error { t.Error("it runs"); return nil }); err == nil {
				t.Errorf("%q: no error", keys)
			}
		}
		cfg := strings.Replace(s.DSN, "/"+s.Name, "/", 1)
		nowhere, _ := locker(t, testdb.Open(t, cfg), 0)
		if err := nowhere.With(t.Context(), "a", 0, nil); err == nil || !strings.Contains(err.Error(), "Config.Scope") {
			t.Errorf("no current database: %v", err)
		}
	})
}

// Keys hide what they are of, and differ wherever their parts do.
func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"a"}, {"A"}, {"a", ""}, {"ab"}, {"a", "b"}, {"b", "a"}} {
		k := Key("users.email", parts...)
		if seen[k] || k != Key("users.email", parts...) || !strings.HasPrefix(k, "users.email/") {
			t.Errorf("%q: %s", parts, k)
		}
		seen[k] = true
	}
	if k := Name("app", Key("users.email", "first.user@example.com")); strings.Contains(k, "first") || !strings.Contains(k, "users-email") {
		t.Error(k)
	}
}

// A wait that its caller gives up loses none of the locks around it, and neither does one longer than the time-out.
func TestNestedWaitsLoseNothing(t *testing.T) {
	t.Parallel() // it waits, most of the time
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, leastTimeout)
		other, _ := locker(t, testdb.Open(t, s.DSN), 0)
		other.with(t, "b", func(context.Context) {
			l.with(t, "a", func(ctx context.Context) {
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				for range 2 { // while it waits, and when it is over
					err := l.With(short, "b", -1, func(context.Context) error { t.Error("it runs"); return nil })
					if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*NotAcquiredError)) {
						t.Errorf("the caller's time is over: %v", err)
					}
				}
				if no := l.refused(ctx, t, "b", leastTimeout+time.Second); no.Waited < leastTimeout+time.Second {
					t.Errorf("waited %s", no.Waited)
				}
				other.refused(t.Context(), t, "a", 0)
				if ctx.Err() != nil {
					t.Error(context.Cause(ctx))
				}
			})
		})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}

// A function that returns while goroutines of its own wait for further locks does not wait for them.
func TestCloseEndsTheWaitsWithin(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, r := locker(t, s.DB, 0)
		other, _ := locker(t, testdb.Open(t, s.DSN), 0)
		other.with(t, "b", func(context.Context) {
			var waits sync.WaitGroup
			l.with(t, "a", func(ctx context.Context) {
				for range 8 {
					waits.Go(func() {
						err := l.With(ctx, "b", -1, func(context.Context) error { t.Error("it runs"); return nil })
						if !errors.Is(err, errClosed) {
							t.Error(err)
						}
					})
				}
				time.Sleep(2 * guardAfter)
			})
			waits.Wait()
		})
		if len(r.all) > 0 {
			t.Errorf("reports %+v", r.all)
		}
	})
}
