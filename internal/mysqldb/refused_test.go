package mysqldb

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
)

// What the servers say of an account or a database that is not to be had is told from what may pass.
func TestRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		testdb.Exec(t, s.DB, "CREATE TABLE t (a INT PRIMARY KEY)")
		change := func(dsn string, f func(*mysql.Config)) string {
			c, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}
			f(c)
			return c.FormatDSN()
		}
		noTable := s.User("INSERT")
		for name, dsn := range map[string]string{
			"wrong password": change(s.User("SELECT"), func(c *mysql.Config) { c.Passwd = "wrong" }),
			"no database":    change(s.DSN, func(c *mysql.Config) { c.DBName = "no_such_database" }),
			"no right to it": change(s.User(), func(c *mysql.Config) { c.DBName = s.Name }),
			"nor the table":  noTable,
		} {
			_, err := openDB(t, Config{DSN: dsn}).ExecContext(t.Context(), "SELECT a FROM t")
			if err == nil || !Refused(err) {
				t.Errorf("%s: %v is not taken for a refusal", name, err)
			}
		}
		_, err := s.DB.ExecContext(t.Context(), "SELECT a FROM no_such_table")
		if err == nil || Refused(err) || Refused(nil) || Refused(io.ErrUnexpectedEOF) {
			t.Errorf("%v is taken for a refusal", err)
		}
	})
}

// What the driver says of a connection goes where all other lines go, in their form.
func TestDriverLogsThroughSlog(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close() // before the handshake
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-closed
	})
	var out bytes.Buffer
	db := openDB(t, Config{DSN: "app:hunter2@tcp(" + l.Addr().String() + ")/app", Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err := db.PingContext(t.Context()); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("ping: %v", err)
	}
	if line := out.String(); !strings.Contains(line, "level=WARN") || !strings.Contains(line, "component=mysql") || !strings.Contains(line, "EOF") {
		t.Errorf("logged %q", line)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Error("the password is logged")
	}
}
