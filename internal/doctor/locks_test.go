package doctor

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
)

func connector(t *testing.T, dsn string) driver.Connector {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// alternating gives each session to the next of several servers, as a proxy in front of two writers does.
type alternating struct {
	servers []driver.Connector
	n       atomic.Int64
}

func (a *alternating) Connect(ctx context.Context) (driver.Conn, error) {
	return a.servers[int(a.n.Add(1))%len(a.servers)].Connect(ctx)
}

func (a *alternating) Driver() driver.Driver { return a.servers[0].Driver() }

func TestTwoServersBehindOneAddress(t *testing.T) {
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			a := &alternating{}
			for range 2 {
				a.servers = append(a.servers, connector(t, testdb.OwnServer(t, f).DSN("mysql")))
			}
			found := mysqlOf(t, Config{OpenDB: func() (*sql.DB, error) { return sql.OpenDB(a), nil }})
			wants(t, found, "mysql.named-locks", Error, "two servers")
		})
	}
}

// sharing is a proxy that has a few sessions with the server, and gives each statement of any client to the next of them.
type sharing struct {
	to    driver.Connector
	conns []driver.Conn
	n     int
}

func (s *sharing) Connect(context.Context) (driver.Conn, error) { return sharer{s}, nil }

func (s *sharing) Driver() driver.Driver { return s.to.Driver() }

type sharer struct{ of *sharing }

func (c sharer) Prepare(query string) (driver.Stmt, error) {
	c.of.n++
	return c.of.conns[c.of.n%len(c.of.conns)].Prepare(query)
}

func (sharer) Close() error { return nil }

func (sharer) Begin() (driver.Tx, error) { return nil, errors.New("no transactions here") }

func TestProxyThatSharesOutSessions(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for n := 1; n <= 5; n++ {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				proxy := &sharing{to: connector(t, s.DSN)}
				for range n {
					conn, err := proxy.to.Connect(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					testdb.CloseAtEnd(t, conn)
					proxy.conns = append(proxy.conns, conn)
				}
				found := mysqlOf(t, Config{OpenDB: func() (*sql.DB, error) { return sql.OpenDB(proxy), nil }})
				wants(t, found, "mysql.named-locks", Error, "do not hold here")
			})
		}
	})
}
