package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// isolation looks at what a relay's session gets, which is READ COMMITTED unless something on the way drops its SET.
func (d *database) isolation(ctx context.Context) (_ []Finding, err error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer end(conn)
	variable := "transaction_isolation"
	if d.kind == outbox.MariaDB {
		variable = "tx_isolation"
	}
	var server, own string
	if _, err = outbox.Prepare(ctx, conn); err != nil {
		return nil, err
	}
	if err = conn.QueryRowContext(ctx, "SELECT @@global."+variable+", @@session."+variable).Scan(&server, &own); err != nil {
		return nil, err
	}
	switch {
	case own != "READ-COMMITTED":
		return find(Error, "find the proxy between this machine and the database that drops SET, and go past it",
			"a relay's session asked for READ COMMITTED and has %s: its deletes would keep producers waiting", own)
	case server == "SERIALIZABLE":
		return find(Warning, "set the server's default to READ-COMMITTED or REPEATABLE-READ, and SERIALIZABLE in the sessions that need it",
			"the server's default isolation is SERIALIZABLE: plain reads of producers and of watching then take locks, and wait for each other")
	}
	return ok("a relay's sessions have READ COMMITTED; the server's default, %s, holds for producers", server)
}

func (d *database) timeZone(ctx context.Context) ([]Finding, error) {
	var zone string
	var off int
	if err := d.db.QueryRowContext(ctx, "SELECT @@session.time_zone, TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())").Scan(&zone, &off); err != nil {
		return nil, err
	}
	if off != 0 {
		return find(Error, "find the proxy between this machine and the database that drops SET, and go past it",
			"a session asked for UTC and has the time zone %s: deliver_at would be read %s off", zone, time.Duration(off)*time.Second)
	}
	return ok("sessions have UTC")
}

// clock compares this machine's clock with the database's, which all ages and delays go by.
func (d *database) clock(ctx context.Context) ([]Finding, error) {
	const form = "2006-01-02 15:04:05.000000"
	before := d.cfg.Now()
	var text string
	if err := d.db.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)").Scan(&text); err != nil {
		return nil, err
	}
	after := d.cfg.Now()
	server, err := time.Parse(form, text)
	if err != nil {
		return nil, fmt.Errorf("the database's time %q cannot be read", text)
	}
	off := before.Add(after.Sub(before) / 2).Sub(server)
	const harmless, wrong = 2 * time.Second, 5 * time.Minute
	switch text := off.Abs().Round(100 * time.Millisecond); {
	case off.Abs() > wrong:
		return find(Warning, "let NTP set both clocks",
			"this machine's clock and the database's differ by %s: oncepost goes by the database's alone, but AWS refuses requests that are signed 5 minutes off, and logs cannot be compared", text)
	case off.Abs() > harmless:
		return find(Note, "let NTP set both clocks",
			"this machine's clock and the database's differ by %s: harmless to oncepost, which goes by the database's alone, but times in logs and in Temporal will not agree", text)
	}
	return ok("this machine's clock and the database's agree within %s", harmless)
}

func (d *database) charset(ctx context.Context) ([]Finding, error) {
	var client, connection, results string
	err := d.db.QueryRowContext(ctx, "SELECT @@session.character_set_client, @@session.character_set_connection, COALESCE(@@session.character_set_results, 'none')").
		Scan(&client, &connection, &results)
	if err != nil {
		return nil, err
	}
	for _, set := range []string{client, connection, results} {
		if set != "utf8mb4" {
			return find(Error, "find the proxy between this machine and the database that changes it, and go past it",
				"a session asked for utf8mb4 and has %s: characters that it lacks would arrive as '?'", set)
		}
	}
	return ok("sessions speak utf8mb4")
}
