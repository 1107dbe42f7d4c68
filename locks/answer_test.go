package locks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// errEOF ends rows.
var errEOF = io.EOF

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// answering is a driver that answers every query with one value.
type answering struct{ value driver.Value }

func (a answering) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a answering) Driver() driver.Driver                        { return nil }
func (answering) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrSkip }
func (answering) Close() error                                   { return nil }
func (answering) Begin() (driver.Tx, error)                      { return nil, driver.ErrSkip }

func (a answering) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &row{values: []driver.Value{a.value}}, nil
}

// Servers answer with a number; drivers and proxies are known that make it text. Only 1 is a yes. (scenarios 30, 31)
func TestOnlyOneIsYes(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer driver.Value
		yes    bool
	}{
		{"1", int64(1), true},
		{"'1'", "1", true},
		{"bytes 1", []byte("1"), true},
		{"0", int64(0), false},
		{"'0'", "0", false},
		{"bytes 0", []byte("0"), false},
		{"NULL", nil, false},
		{"2", int64(2), false},
		{"''", "", false},
		{"true", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := sql.OpenDB(answering{c.answer})
			defer db.Close()
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := &Session{conn: conn}
			got, err := s.TryLock(t.Context(), "a")
			want(t, "lock", got, err, c.yes)
			got, err = s.Unlock(t.Context(), "a")
			want(t, "unlock", got, err, c.yes)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What each error number of the two servers means.
func TestErrorNumbers(t *testing.T) {
	for number, want := range map[uint16]string{
		3058: "deadlock", 1213: "deadlock", 1205: "deadlock", 4031: "gone", 1927: "gone", 3169: "gone", 1053: "gone",
		4163: "misnamed", 1059: "misnamed", 1105: "",
	} {
		err := fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})
		got := ""
		for name, is := range map[string]func(error) bool{"deadlock": deadlock, "gone": gone, "misnamed": misnamed} {
			if is(err) {
				got += name
			}
		}
		if got != want {
			t.Errorf("%d: %q, want %q", number, got, want)
		}
	}
}
