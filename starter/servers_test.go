package starter

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
)

// TestSessionsToDifferentServersEndTheTerm: during a failover behind one name, new connections lead to either server.
func TestSessionsToDifferentServersEndTheTerm(t *testing.T) { // scenario 39
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			old, s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f)), testdb.NewSchema(t, f)
			migrated(t, s)
			if _, err := old.DB.ExecContext(t.Context(), "CREATE DATABASE "+s.Name); err != nil {
				t.Fatal(err)
			}
			replica, err := mysqldb.Open(mysqldb.Config{DSN: strings.Replace(s.DSN, s.Server.Addr(), old.Server.Addr(), 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer replica.Close()
			if _, err := migrate.Up(t.Context(), replica); err != nil {
				t.Fatal(err)
			}
			var failover atomic.Bool
			failover.Store(true)
			var n atomic.Int64
			proxy := testnet.New(t, func() string {
				if failover.Load() && n.Add(1)%2 == 0 {
					return old.Server.Addr()
				}
				return s.Server.Addr()
			})
			rec := newRecorder()
			dsn := strings.Replace(s.DSN, s.Server.Addr(), proxy.Addr(), 1)
			relay := startRelayAt(t, s, dsn, rec, quick(), nil)
			enqueue(t, s, message("a"))
			cond := relay.conds.await(t, CondDatabase, true)
			if !strings.Contains(cond.Detail, "different servers") {
				t.Errorf("report: %s", cond.Detail)
			}
			failover.Store(false)
			relay.conds.await(t, CondDatabase, false)
			rec.await(t, "the start", func(r *recorder) bool { return r.starts["a"] == 1 })
		})
	}
}

func TestPagesAreBoundedInBytes(t *testing.T) {
	cfg, err := quick().withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	relay := &Relay{cfg: cfg, rows: newInflight(), finds: newFinished()}
	r := &reader{relay: relay, pace: pace{done: func() int64 { return 0 }}}
	for _, size := range []int{500, 8 << 10, 1 << 20} {
		r.rowSize, r.pace.rate = size, 1e6
		rooms := r.rooms()
		for _, room := range append(rooms[:], r.glanceRows()) {
			if room*size > pageBytes && room > 32 {
				t.Errorf("rows of %d bytes: a page of %d rows", size, room)
			}
		}
	}
}
