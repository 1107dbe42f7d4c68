package locks

import (
	"database/sql"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // what testdb opens

	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv("ONCEPOST_TEST_LOCKS"); mode != "" {
		os.Exit(child(mode))
	}
	os.Exit(testdb.Main(m))
}

func openSession(t *testing.T, db *sql.DB, idle time.Duration) *Session {
	t.Helper()
	s, err := Open(t.Context(), db, idle)
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, s)
	return s
}

// want checks the answers of a call for several names.
func want(t *testing.T, what string, got []bool, err error, want ...bool) {
	t.Helper()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %v, %v; want %v", what, got, err, want)
	}
}

func TestOneSessionHoldsALock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		a, b := Name(s.Name, "a"), Name(s.Name, "b")
		first, second := openSession(t, s.DB, 0), openSession(t, s.DB, 0)
		got, err := first.TryLock(t.Context(), a)
		want(t, "the first takes a", got, err, true)
		got, err = second.TryLock(t.Context(), a, b)
		want(t, "the second takes what is free", got, err, false, true)
		got, err = first.Held(t.Context(), a, b, Name(s.Name, "c"))
		want(t, "held", got, err, true, true, false)
		got, err = second.Unlock(t.Context(), a, b)
		want(t, "the second releases its own only", got, err, false, true)
		got, err = first.Held(t.Context(), a, b)
		want(t, "held after that", got, err, true, false)
		got, err = first.Unlock(t.Context(), Name(s.Name, "c"))
		want(t, "a lock that nobody holds", got, err, false) // scenario 30
		got, err = first.TryLock(t.Context())
		want(t, "no name", got, err)
	})
}

// A closed session's locks are free at once, and its connection does not go back to the pool with them. (scenario 29)
func TestCloseFreesTheLocks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		s.DB.SetMaxOpenConns(2)
		name := Name(s.Name, "a")
		other := openSession(t, s.DB, 0)
		for range 5 {
			session := openSession(t, s.DB, 0)
			got, err := session.TryLock(t.Context(), name)
			want(t, "lock", got, err, true)
			for range 2 {
				if err := session.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			testdb.Eventually(t, "the lock to be free", func() bool {
				got, err := other.Held(t.Context(), name)
				return err == nil && !got[0]
			})
			if n := s.DB.Stats().OpenConnections; n != 1 {
				t.Errorf("%d connections are open, want the other session's", n)
			}
		}
	})
}

// What uses a session that somebody else has closed gets an error, and neither a crash nor a lock.
func TestAClosedSessionAnswersWithAnError(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		session := openSession(t, s.DB, 0)
		used := make(chan error, 1)
		began := make(chan struct{})
		go func() {
			begin := sync.OnceFunc(func() { close(began) })
			for {
				_, err := session.TryLock(t.Context(), Name(s.Name, "a"))
				if begin(); err != nil {
					used <- err
					return
				}
			}
		}()
		<-began
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-used; !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("a lock on it: %v, want sql.ErrConnDone", err)
		}
		if _, err := session.Holder(t.Context(), Name(s.Name, "a")); !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("a question to it: %v, want sql.ErrConnDone", err)
		}
	})
}

// A thousand acquisitions that fail leave nothing behind. (scenario 32)
func TestFailedAcquisitionsLeakNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		holder, session := openSession(t, s.DB, 0), openSession(t, s.DB, 0)
		name := Name(s.Name, "a")
		got, err := holder.TryLock(t.Context(), name)
		want(t, "lock", got, err, true)
		for range 1000 {
			if got, err := session.TryLock(t.Context(), name); err != nil || got[0] {
				t.Fatalf("%v, %v", got, err)
			}
		}
		if n := s.DB.Stats().OpenConnections; n != 2 {
			t.Errorf("%d connections are open, want 2", n)
		}
		got, err = holder.Unlock(t.Context(), name)
		want(t, "unlock", got, err, true)
		got, err = session.TryLock(t.Context(), name)
		want(t, "the lock after that", got, err, true)
	})
}

// A killed session has lost its locks, and says so by an error and never by an answer. (scenario 32)
func TestKilledSessionHasLostItsLocks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		name := Name(s.Name, "a")
		session, other := openSession(t, s.DB, 0), openSession(t, s.DB, 0)
		got, err := session.TryLock(t.Context(), name)
		want(t, "lock", got, err, true)
		if _, err := s.DB.ExecContext(t.Context(), "KILL "+itoa(session.ID())); err != nil {
			t.Fatal(err)
		}
		testdb.Eventually(t, "the lock to be free", func() bool {
			got, err := other.TryLock(t.Context(), name)
			return err == nil && got[0]
		})
		if got, err := session.TryLock(t.Context(), name); err == nil {
			t.Errorf("a killed session answers %v", got)
		}
		if got, err := session.Unlock(t.Context(), name); err == nil {
			t.Errorf("a killed session answers %v", got)
		}
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// The holder of a lock is known by its connection ID, whoever asks.
func TestHolder(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		name := Name(s.Name, "a")
		session, other := openSession(t, s.DB, 0), openSession(t, s.DB, 0)
		holds := func(when string, want int64) {
			t.Helper()
			for _, by := range []*Session{session, other} {
				if id, err := by.Holder(t.Context(), name); id != want || err != nil {
					t.Errorf("%s: holder %d, %v; want %d", when, id, err, want)
				}
			}
		}
		holds("nobody has it", 0)
		got, err := session.TryLock(t.Context(), name)
		want(t, "lock", got, err, true)
		holds("one has it", session.ID())
		if id, err := other.Holder(t.Context(), Name(s.Name, "b")); id != 0 || err != nil {
			t.Errorf("another lock: holder %d, %v", id, err)
		}
		got, err = session.Unlock(t.Context(), name)
		want(t, "unlock", got, err, true)
		holds("it was given back", 0)
	})
}

// A user without any privilege ends a session of its own, whose locks are free then; a session that is gone, and another
// user's, is an error.
func TestKill(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		db, err := sql.Open("mysql", s.User())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		name := Name(s.Name, "a")
		stale, session, bystander := openSession(t, db, 0), openSession(t, db, 0), openSession(t, db, 0)
		got, err := stale.TryLock(t.Context(), name)
		want(t, "lock", got, err, true)
		if err := session.Kill(t.Context(), stale.ID()); err != nil {
			t.Fatal(err)
		}
		testdb.Eventually(t, "the lock to be free", func() bool {
			id, err := session.Holder(t.Context(), name)
			return err == nil && id == 0
		})
		if got, err := stale.TryLock(t.Context(), name); err == nil {
			t.Errorf("a killed session answers %v", got)
		}
		for what, id := range map[string]int64{"a session that is gone": stale.ID(), "another user's": openSession(t, s.DB, 0).ID()} {
			if err := session.Kill(t.Context(), id); err == nil || !strings.HasPrefix(err.Error(), "locks: end session ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		got, err = bystander.TryLock(t.Context(), name)
		want(t, "a session that was not meant", got, err, true)
	})
}

// The server ends a session whose client has frozen, after the idle time asked for.
func TestIdleSessionIsEndedByTheServer(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		name := Name(s.Name, "a")
		frozen, other := openSession(t, s.DB, time.Second), openSession(t, s.DB, 0)
		got, err := frozen.TryLock(t.Context(), name)
		want(t, "lock", got, err, true)
		testdb.Eventually(t, "the frozen session's end", func() bool {
			got, err := other.TryLock(t.Context(), name)
			return err == nil && got[0]
		})
		if got, err := frozen.Held(t.Context(), name); err == nil {
			t.Errorf("an ended session answers %v", got)
		}
	})
}

func TestIdleIsRoundedUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for idle, seconds := range map[time.Duration]int{
			time.Nanosecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, 30 * time.Second: 30,
		} {
			session := openSession(t, s.DB, idle)
			var got int
			if err := session.Conn().QueryRowContext(t.Context(), "SELECT @@wait_timeout").Scan(&got); err != nil || got != seconds {
				t.Errorf("%s: wait_timeout %d, %v; want %d", idle, got, err, seconds)
			}
		}
	})
}

func TestOpenOfAnUnreachableServer(t *testing.T) {
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:1)/app")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := Open(t.Context(), db, 0); err == nil || !strings.HasPrefix(err.Error(), "locks: ") {
		t.Errorf("error %v", err)
	}
}
