package starter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// churnEnv says for how long the producers of TestProducersSeeNoLockErrors work on each server, as "3m". Default 15s.
const churnEnv = "ONCEPOST_TEST_CHURN"

func churnTime(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(or(os.Getenv(churnEnv), "15s"))
	if err != nil {
		t.Fatalf("%s: %v", churnEnv, err)
	}
	return d
}

// TestProducersSeeNoLockErrors: 16 producers, in the server's default isolation level and with the shortest lock time-out
// there is, enqueue new keys and again and again the same natural ones, while four relays start and delete them. They keep
// their transactions open for a while, and roll some back.
//
// The keys of each producer are in a shard of its own: no two of them can meet in a lock, nor in the gap before one. Any
// error 1205 or 1213 is from a relay. That a pending key is refused (1062) is right.
//
// $ONCEPOST_TEST_CHURN=3m makes it last as long on each server.
func TestProducersSeeNoLockErrors(t *testing.T) { // scenario 17
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		rec := newRecorder()
		rec.answer = func(ctx context.Context, _ *outbox.Row, _ int) Outcome {
			sleep(ctx, rand.N(20*time.Millisecond))
			return Outcome{}
		}
		var relays []*running
		for range 4 {
			relays = append(relays, startRelay(t, s, rec, quick()))
		}
		all := churn(t, s)
		t.Logf("%+v", all.figures)
		if all.Refused == 0 || all.Again == 0 || all.RolledBack == 0 {
			t.Error("the producers have not met the relays")
		}
		for _, relay := range relays {
			if n, cond := relay.conds.find(CondDatabase, true); n != 0 {
				t.Errorf("a relay had to begin anew %d times: %s", n, cond.Detail)
			}
		}
		testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
		rec.set(func(r *recorder) {
			for id, n := range all.committed {
				if r.starts[id] < n {
					t.Errorf("%s: committed %d times, and started %d times", id, n, r.starts[id])
				}
			}
			if len(r.starts) != len(all.committed) {
				t.Errorf("%d IDs have started, and %d were committed", len(r.starts), len(all.committed))
			}
		})
	})
}

// churn runs 16 producers, and beside them four relays that are far away, until the time is over or something has failed.
func churn(t *testing.T, s *testdb.Schema) *producer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), churnTime(t))
	defer cancel()
	var running sync.WaitGroup
	producers := make([]*producer, outbox.FirstExpressShard)
	for i := range producers {
		p := newProducer(i, testdb.Conn(t, s.DB, "SET SESSION innodb_lock_wait_timeout = 1"))
		producers[i] = p
		running.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				if err := p.transaction(t.Context()); err != nil {
					t.Errorf("producer %d: %v", p.shard, err)
				}
			}
		})
	}
	for i := range uint8(4) {
		running.Go(func() { moveFromAfar(ctx, t, s, i, i+4, i+8, i+12) })
	}
	running.Wait()
	all := newProducer(0, nil)
	for _, p := range producers {
		all.add(p)
	}
	return all
}

// producer enqueues messages of one shard, and of its twin in the express lane.
type producer struct {
	shard     int
	conn      *sql.Conn
	rand      *rand.Rand
	natural   []outbox.Message // enqueued again and again
	serial    int
	committed map[string]int
	figures
}

type figures struct {
	Transactions, RolledBack, Committed, Again, Refused int
	Slowest                                             time.Duration // of all inserts
}

func newProducer(shard int, conn *sql.Conn) *producer {
	p := &producer{shard: shard, conn: conn, rand: rand.New(rand.NewPCG(17, uint64(shard))), committed: map[string]int{}}
	for i := range 12 {
		m := p.message("natural")
		m.Priority = 1 + i%4
		p.natural = append(p.natural, m)
	}
	return p
}

// message is one with a new ID of the producer's shard.
func (p *producer) message(prefix string) outbox.Message {
	for {
		p.serial++
		id := fmt.Sprintf("%s:%08d", prefix, p.serial)
		if int(crc32.ChecksumIEEE([]byte(id))%outbox.FirstExpressShard) == p.shard {
			return message(id)
		}
	}
}

// transaction enqueues up to six messages, and commits three times in four.
func (p *producer) transaction(ctx context.Context) error {
	tx, err := p.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var ids []string
	for range 1 + p.rand.IntN(6) {
		id, err := p.enqueue(ctx, tx)
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if id != "" {
			ids = append(ids, id)
		}
		p.hold(ctx)
	}
	p.Transactions++
	if p.rand.IntN(4) == 0 {
		p.RolledBack++
		return tx.Rollback()
	}
	for _, id := range ids {
		if p.committed[id]++; p.committed[id] > 1 {
			p.Again++
		}
		p.Committed++
	}
	return tx.Commit()
}

// enqueue returns "" where the key is pending.
func (p *producer) enqueue(ctx context.Context, tx *sql.Tx) (id string, err error) {
	m := p.natural[p.rand.IntN(len(p.natural))]
	if p.rand.IntN(3) == 0 {
		m = p.message("fresh")
	}
	began := time.Now()
	id, err = outbox.Enqueue(ctx, tx, m)
	p.Slowest = max(p.Slowest, time.Since(began))
	if errors.Is(err, outbox.ErrDuplicate) {
		p.Refused++
		return "", nil
	}
	return id, err
}

// hold keeps the transaction open: mostly for a moment, and at times for longer than a producer waits for a lock.
func (p *producer) hold(ctx context.Context) {
	longest := 5 * time.Millisecond
	switch n := p.rand.IntN(100); {
	case n < 2:
		longest = 3 * time.Second
	case n < 20:
		longest = 150 * time.Millisecond
	}
	sleep(ctx, time.Duration(p.rand.Int64N(int64(longest))))
}

func (p *producer) add(other *producer) {
	for id, n := range other.committed {
		p.committed[id] += n
	}
	p.Transactions += other.Transactions
	p.RolledBack += other.RolledBack
	p.Committed += other.Committed
	p.Again += other.Again
	p.Refused += other.Refused
	p.Slowest = max(p.Slowest, other.Slowest)
}

// moveFromAfar moves messages to outbox_failed on a relay's session to which every answer takes long, so that each of its
// transactions is open for longer than a producer waits for a lock. The messages are gone: the relay that took the shards over
// has moved them. They were in some producers' shards, between the keys that are enqueued now.
func moveFromAfar(ctx context.Context, t *testing.T, s *testdb.Schema, shards ...uint8) {
	var far atomic.Bool
	cfg, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Error(err)
		return
	}
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return farConn{c, &far}, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	kind, err := outbox.Prepare(t.Context(), conn)
	if err != nil {
		t.Error(err)
		return
	}
	far.Store(true)
	defer far.Store(false)
	deleter := outbox.Table{}.NewDeleter(conn, kind)
	for i := 0; ctx.Err() == nil && !t.Failed(); i++ {
		// Behind "fresh:" and before "natural:".
		gone := outbox.Key{Shard: shards[i%len(shards)], MessageID: "gone", CreatedAt: "2026-01-01 00:00:00.000000"}
		if moved, err := deleter.MoveToFailed(t.Context(), gone, outbox.ReasonNeverStarts, ""); moved || err != nil {
			t.Errorf("a move from afar: %v, %v", moved, err)
		}
	}
}

// farConn is a connection whose every answer takes long, once it is far.
type farConn struct {
	net.Conn
	far *atomic.Bool
}

func (c farConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.far.Load() {
		time.Sleep(2 * time.Second)
	}
	return n, err
}
