package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/starter"
)

// database is the server as the checks see it.
type database struct {
	db      *sql.DB
	cfg     Config
	version string
	kind    outbox.Kind
}

func checkMySQL(ctx context.Context, cfg Config) []Finding {
	d := &database{cfg: cfg}
	defer func() {
		if d.db != nil {
			_ = d.db.Close() // at the end of a program that has only looked
		}
	}()
	return run(ctx, cfg.Timeout, []check{
		{name: "mysql.reachable", look: d.reachable, gate: true},
		{name: "mysql.version", look: d.supported},
		{name: "mysql.read-only", look: d.readOnly},
		{name: "mysql.isolation", look: d.isolation},
		{name: "mysql.time-zone", look: d.timeZone},
		{name: "mysql.clock", look: d.clock},
		{name: "mysql.charset", look: d.charset},
		{name: "mysql.max-allowed-packet", look: d.packet},
		{name: "mysql.binlog-format", look: d.binlog},
		{name: "mysql.cluster", look: d.cluster},
		{name: "mysql.named-locks", look: d.namedLocks},
		{name: "mysql.connections", look: d.connections},
		{name: "mysql.migrations", look: d.migrations, gate: true},
		{name: "mysql.engine", look: d.engine},
		{name: "mysql.columns", look: d.columns},
		{name: "mysql.constraints", look: d.constraints},
		{name: "mysql.rights", look: d.rights},
		{name: "mysql.watching", look: d.watching},
	})
}

func (d *database) reachable(ctx context.Context) (_ []Finding, err error) {
	if d.db, err = d.cfg.OpenDB(); err != nil {
		return find(Error, "set ONCEPOST_MYSQL_DSN to user:password@tcp(host:3306)/database", "no database can be opened: %s", err)
	}
	if err := d.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&d.version); err != nil {
		return find(Error, "see to it that the server runs, that this machine reaches it, and that the account and the database of ONCEPOST_MYSQL_DSN exist",
			"the database cannot be reached, so that no message is read and none is sent: %s", reason(err, d.cfg.Timeout))
	}
	d.kind = outbox.KindOf(d.version)
	return ok("the database can be reached")
}

func (d *database) supported(context.Context) ([]Finding, error) {
	name, least := "MySQL", [3]int{8, 0, 16}
	if d.kind == outbox.MariaDB {
		name, least = "MariaDB", [3]int{10, 11, 0}
	}
	have, err := parseVersion(d.version)
	if err != nil {
		return nil, err
	}
	for i := range have {
		if have[i] < least[i] {
			return find(Error, "use MySQL 8.0.16 or MariaDB 10.11, or later ones",
				"%s %s is older than oncepost's tables need: they hold CHECK constraints and defaults that it does not know or does not keep", name, d.version)
		}
		if have[i] > least[i] {
			break
		}
	}
	return ok("%s %s is supported", name, d.version)
}

// parseVersion reads the first three numbers of VERSION(). MariaDB puts 5.5.5- in front for old replicas.
func parseVersion(s string) (v [3]int, err error) {
	numbers, _, _ := strings.Cut(strings.TrimPrefix(s, "5.5.5-"), "-") // all of it where there is no suffix
	parts := strings.SplitN(numbers, ".", 4)                           // Aurora has more behind
	for i := range min(len(parts), len(v)) {
		if v[i], err = strconv.Atoi(parts[i]); err != nil {
			return v, fmt.Errorf("the version %q cannot be read", s)
		}
	}
	return v, nil
}

func (d *database) readOnly(ctx context.Context) ([]Finding, error) {
	state, err := d.kind.State(ctx, d.db)
	if err != nil {
		return nil, err
	}
	if state.ReadOnly {
		return find(Error, "point ONCEPOST_MYSQL_DSN at the writer, or end read_only there",
			"the server is read-only, as a replica or a demoted primary is: nothing that has started could be deleted, so the relay starts nothing")
	}
	return ok("the server takes writes")
}

// leastPacket holds the largest message four times.
const leastPacket = 4 << 20

func (d *database) packet(ctx context.Context) ([]Finding, error) {
	var size int64
	if err := d.db.QueryRowContext(ctx, "SELECT @@session.max_allowed_packet").Scan(&size); err != nil {
		return nil, err
	}
	if size < leastPacket {
		return find(Warning, "set max_allowed_packet to 16M or more on the server",
			"max_allowed_packet is %d bytes: a message may have 1 MiB, and several that are written at once more; such an INSERT would fail", size)
	}
	return ok("max_allowed_packet is %d MiB", size>>20)
}

// binlog: InnoDB refuses to log a write under READ COMMITTED by its statement (error 1665).
func (d *database) binlog(ctx context.Context) ([]Finding, error) {
	format, err := d.variable(ctx, "binlog_format")
	if err != nil {
		return nil, err
	}
	log, err := d.variable(ctx, "log_bin")
	if err != nil {
		return nil, err
	}
	if log == "ON" && format == "STATEMENT" {
		return find(Error, "set binlog_format to ROW", "binlog_format is STATEMENT: the server refuses every write of the relay, which works under READ COMMITTED (error 1665)")
	}
	return ok("the binary log is no obstacle")
}

// variable is a variable of the server, or "" where it has none of this name.
func (d *database) variable(ctx context.Context, name string) (value string, err error) {
	err = d.db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES LIKE '"+name+"'").Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

func (d *database) cluster(ctx context.Context) ([]Finding, error) {
	for _, kind := range []struct{ variable, value, name string }{
		{"wsrep_on", "ON", "a node of a Galera cluster"},
		{"group_replication_single_primary_mode", "OFF", "a member of a group with several primaries"},
	} {
		value, err := d.variable(ctx, kind.variable)
		if err != nil {
			return nil, err
		}
		if value == kind.value {
			return find(Error, "let all of oncepost, and all jobs under locks, go to one node: docs/clusters.md",
				"the server is %s: a named lock (GET_LOCK) holds on one node only, so that a job may run twice at a time, and relays on two nodes start the same messages, which Temporal refuses", kind.name)
		}
	}
	return ok("the server is no node of a cluster with several writers")
}

// connections: a relay keeps some for itself. Those of others come and go.
func (d *database) connections(ctx context.Context) ([]Finding, error) {
	var server, account, used int
	var name string
	if err := d.db.QueryRowContext(ctx, "SELECT @@global.max_connections, @@session.max_user_connections").Scan(&server, &account); err != nil {
		return nil, err
	}
	if err := d.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &used); err != nil {
		return nil, err
	}
	const need, do = starter.MinConnections, "raise max_connections, or the account's MAX_USER_CONNECTIONS"
	switch {
	case server < need || account > 0 && account < need:
		return find(Error, do, "the server allows %d connections and this account %s; one relay needs %d", server, limitText(account), need)
	case server-used < need:
		return find(Warning, do, "of the server's %d connections %d are in use; one relay needs %d more", server, used, need)
	}
	return ok("%d of the server's %d connections are in use; one relay needs %d", used, server, need)
}

func limitText(n int) string {
	if n == 0 {
		return "as many"
	}
	return strconv.Itoa(n)
}

func (d *database) migrations(ctx context.Context) ([]Finding, error) {
	err := migrate.Check(ctx, d.db)
	var version *migrate.VersionError
	if errors.As(err, &version) {
		return find(Error, "run `oncepost migrate` with an account that may (docs/grants.md)", "%s", "relay and worker will not start: "+err.Error())
	}
	if err != nil {
		return nil, err
	}
	return ok("the tables are at the version that this oncepost needs, %d, or a later one", migrate.Latest())
}
