package locks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
)

// faulty makes connections to a real server that fail as a test wants.
type faulty struct {
	driver.Connector

	mu     sync.Mutex
	faults []fault
	leaves bool // closing a connection leaves the server's session
}

// fault answers the statements that hold some words.
type fault struct {
	words  string
	value  driver.Value // with err nil
	values []driver.Value
	err    error
	before func() // in place of an answer: it runs, and then the statement
	after  error  // in place of the statement's answer
}

// realConn is what the driver's connections are.
type realConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

type faultyConn struct {
	realConn
	f *faulty
}

func (f *faulty) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{c.(realConn), f}, nil
}

func (f *faulty) of(query string) (fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.faults, func(x fault) bool { return strings.Contains(query, x.words) })
	if i < 0 {
		return fault{}, false
	}
	if x := f.faults[i]; x.before == nil {
		if x.values == nil {
			x.values = slices.Repeat([]driver.Value{x.value}, strings.Count(query, "_LOCK(")) // one for each function
		}
		return x, true
	}
	f.faults[i].before()
	return fault{}, false
}

func (f *faulty) set(leaves bool, faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaves, f.faults = leaves, faults
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	x, hit := c.f.of(query)
	if hit && x.after == nil {
		return &row{values: x.values}, x.err
	}
	rows, err := c.realConn.QueryContext(ctx, query, args)
	if err == nil && x.after != nil {
		err = errors.Join(rows.Close(), x.after)
	}
	return rows, err
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if x, hit := c.f.of(query); hit {
		return driver.ResultNoRows, x.err
	}
	return c.realConn.ExecContext(ctx, query, args)
}

func (c *faultyConn) Close() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.f.leaves {
		return nil
	}
	return c.realConn.Close()
}

// told collects reports.
type told struct {
	mu  sync.Mutex
	all []Report
}

func (r *told) report(x Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, x)
}

func (r *told) points() (points []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.all {
		points = append(points, x.Point)
	}
	return points
}

// newFaulty returns a Locker on connections that can be made to fail, and what it reports.
func newFaulty(t *testing.T, s *testdb.Schema) (*Locker, *faulty, *told) {
	t.Helper()
	cfg, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f, r := &faulty{Connector: connector}, &told{}
	db := sql.OpenDB(f)
	testdb.CloseAtEnd(t, db)
	l, err := New(db, Config{Report: r.report})
	if err != nil {
		t.Fatal(err)
	}
	return l, f, r
}

var (
	errServer = &mysql.MySQLError{Number: 1105, Message: "unknown"}
	errWork   = errors.New("the work failed")
)

// Each way in which a clean-up goes wrong: it is reported in one shape, the lock is free at once, and the caller sees the very
// error of its function. (scenarios 29, 30)
func TestCleanUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []fault
		leaves bool
		lasts  time.Duration
		points []string
		taken  bool // the lock stays so
	}{
		{name: "nothing wrong"},
		{name: "nothing wrong, after some time", lasts: 2 * guardAfter},
		{name: "release fails", faults: []fault{{words: "RELEASE_LOCK", err: errServer}}, points: []string{PointReleaseFailed}},
		{name: "release times out", faults: []fault{{words: "RELEASE_LOCK", err: context.DeadlineExceeded}}, points: []string{PointReleaseFailed}},
		{name: "release answers 0", faults: []fault{{words: "RELEASE_LOCK", value: int64(0)}}, points: []string{PointLockLost}},
		{name: "release answers '0'", faults: []fault{{words: "RELEASE_LOCK", value: "0"}}, points: []string{PointLockLost}},
		{name: "release answers NULL", faults: []fault{{words: "RELEASE_LOCK"}}, points: []string{PointLockLost}},
		{name: "connection gone", faults: []fault{{words: "RELEASE_LOCK", err: driver.ErrBadConn}}, points: []string{PointConnectionGone}},
		{name: "connection gone, as the driver says it", faults: []fault{{words: "RELEASE_LOCK", err: mysql.ErrInvalidConn}}, points: []string{PointConnectionGone}},
		{
			name: "ended for silence", points: []string{PointConnectionGone},
			faults: []fault{{words: "RELEASE_LOCK", err: &mysql.MySQLError{Number: mysqlIdleTimeout}}},
		},
		{
			name: "gone when it should go back", lasts: 2 * guardAfter, points: []string{PointConnectionGone},
			faults: []fault{{words: "wait_timeout = 28800", err: driver.ErrBadConn}, {words: "wait_timeout = 600", err: driver.ErrBadConn}},
		},
		{
			name: "the session does not end, KILL helps", leaves: true, points: []string{PointReleaseFailed},
			faults: []fault{{words: "RELEASE_LOCK", err: errServer}},
		},
		{
			name: "the session does not end at all", leaves: true, taken: true, points: []string{PointReleaseFailed, PointSessionNotEnded},
			faults: []fault{{words: "RELEASE_LOCK", err: errServer}, {words: "KILL", err: errServer}},
		},
		{
			name: "nobody can tell whether it has ended", points: []string{PointReleaseFailed, PointSessionNotEnded},
			faults: []fault{{words: "RELEASE_LOCK", err: errServer}, {words: "SELECT IS_USED_LOCK", err: errServer}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
				l, f, r := newFaulty(t, s)
				err := l.With(t.Context(), "a", 0, func(context.Context) error {
					time.Sleep(c.lasts)
					f.set(c.leaves, c.faults...)
					return errWork
				})
				if err != errWork { //nolint:errorlint // the very error
					t.Errorf("error %v", err)
				}
				if points := r.points(); !slices.Equal(points, c.points) {
					t.Errorf("reports %+v, want %v", r.all, c.points)
				}
				f.set(false)
				for _, x := range r.all {
					if x.Session == 0 || x.Err == nil || x.Text() == "" || len(x.Attrs()) != 4 {
						t.Errorf("%+v", x)
					}
				}
				if free := openSession(t, s.DB, 0).freeAtOnce(t, Name(s.Name, "a")); free == c.taken {
					t.Errorf("the lock is free: %v", free)
				}
			})
		})
	}
}

// freeAtOnce tells whether the lock can be taken.
func (s *Session) freeAtOnce(t *testing.T, name string) bool {
	t.Helper()
	got, err := s.TryLock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

// A session that did not take the lock for certain is ended, and the function does not run. (scenario 31)
func TestDoubtfulAnswersAreNoLock(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  fault
		error  string
		points []string
	}{
		{"an error", fault{err: errServer}, "unknown", nil},
		{"the name is refused", fault{err: &mysql.MySQLError{Number: mysqlWrongName, Message: "wrong"}}, "refuses the name oncepost:a:", nil},
		{"MariaDB refuses it", fault{err: &mysql.MySQLError{Number: mariadbWrongName, Message: "wrong"}}, "refuses the name oncepost:a:", nil},
		{"too few columns", fault{value: "0"}, `take "a"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
				l, f, r := newFaulty(t, s)
				answer := c.fault
				answer.words = "GET_LOCK"
				f.set(false, answer)
				err := l.With(t.Context(), "a", time.Minute, func(context.Context) error { t.Error("it runs"); return nil })
				if err == nil || !strings.Contains(err.Error(), c.error) || errors.As(err, new(*NotAcquiredError)) {
					t.Errorf("error %v", err)
				}
				if !slices.Equal(r.points(), c.points) {
					t.Errorf("reports %+v", r.all)
				}
			})
		})
	}
}

// answers is a server that answers GET_LOCK with one value, on connection 7.
type answers struct{ got, holder driver.Value }

func (a answers) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a answers) Driver() driver.Driver                        { return nil }
func (answers) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrSkip }
func (answers) Close() error                                   { return nil }
func (answers) Begin() (driver.Tx, error)                      { return nil, driver.ErrSkip }
func (a answers) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.Contains(query, "GET_LOCK"):
		return &row{values: []driver.Value{int64(1), a.got, int64(7), int64(600), a.holder}}, nil
	case strings.Contains(query, "RELEASE_LOCK"):
		return &row{values: slices.Repeat([]driver.Value{int64(1)}, strings.Count(query, "RELEASE_LOCK"))}, nil
	}
	return &row{values: []driver.Value{nil}}, nil
}

type row struct {
	values []driver.Value
	read   bool
}

func (r *row) Columns() []string { return make([]string, len(r.values)) }
func (*row) Close() error        { return nil }
func (r *row) Next(dest []driver.Value) error {
	if r.read {
		return errEOF
	}
	r.read = true
	copy(dest, r.values)
	return nil
}

// Only 1 is a yes, 0 is a no, and what is neither is an error, whatever type a driver or a proxy makes of it. (scenario 31)
func TestAnswersOfGetLock(t *testing.T) {
	const yes, no, doubt = "", "is held by session 9", "answered"
	for _, c := range []struct {
		answer driver.Value
		error  string
	}{
		{int64(1), yes},
		{"1", yes},
		{[]byte("1"), yes},
		{int64(0), no},
		{"0", no},
		{[]byte("0"), no},
		{nil, doubt + " NULL"},
		{int64(2), doubt},
		{"", doubt},
		{true, doubt},
	} {
		holder := int64(9)
		if c.error == yes {
			holder = 7
		}
		db := sql.OpenDB(answers{c.answer, holder})
		r := &told{}
		l, err := New(db, Config{Scope: "app", Report: r.report})
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		err = l.With(t.Context(), "a", 0, func(context.Context) error { ran = true; return nil })
		if (err == nil) != (c.error == yes) || err != nil && !strings.Contains(err.Error(), c.error) || ran != (c.error == yes) || len(r.all) > 0 {
			t.Errorf("%v: ran %v, %v, %+v", c.answer, ran, err, r.all)
		}
		if is := errors.As(err, new(*NotAcquiredError)); is != (c.error == no) {
			t.Errorf("%v: %T", c.answer, err)
		}
		db.Close()
	}
	db := sql.OpenDB(answers{int64(1), int64(9)})
	defer db.Close()
	l, err := New(db, Config{Scope: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.With(t.Context(), "a", 0, func(context.Context) error { return nil }); err == nil || !strings.Contains(err.Error(), "do not hold behind this") {
		t.Errorf("1, while another session has it: %v", err)
	}
}

// A nested lock whose release fails is free at once, though the outer function goes on; that one has lost its own.
func TestANestedReleaseFails(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		l, f, r := newFaulty(t, s)
		other, _ := locker(t, s.DB, 0)
		err := l.With(t.Context(), "a", 0, func(ctx context.Context) error {
			err := l.With(ctx, "b", 0, func(context.Context) error {
				f.set(true, fault{words: "RELEASE_LOCK", err: errServer})
				return errWork
			})
			if err != errWork { //nolint:errorlint // the very error
				t.Errorf("error %v", err)
			}
			other.with(t, "b", func(context.Context) {})
			if !errors.As(context.Cause(ctx), new(*LostError)) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return nil
		})
		if points := r.points(); err != nil || !slices.Equal(points, []string{PointReleaseFailed}) {
			t.Errorf("%v, reports %+v", err, r.all)
		}
	})
}
