package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/monitor"
)

// The parts of oncepost whose accounts are looked at.
const (
	Relay  = "relay"
	Worker = "worker"
	Watch  = "watch"
)

var roles = []string{Relay, Worker, Watch}

// right is what roles need of a table. Column is one that an INSERT or UPDATE can name.
type right struct {
	table, column string
	of            map[string]string // role: privileges
}

// needed are docs/grants.md's rights; a test compares them.
var needed = []right{
	{"outbox_messages", "event_type", map[string]string{Relay: "SELECT, INSERT, DELETE", Worker: "SELECT", Watch: "SELECT"}},
	{"outbox_failed", "reason", map[string]string{Relay: "SELECT, INSERT", Worker: "SELECT, DELETE", Watch: "SELECT"}},
	{"outbox_binding", "id", map[string]string{Relay: "SELECT, INSERT"}},
	{"sends", "step", map[string]string{Worker: "SELECT, INSERT, UPDATE, DELETE"}},
	{"sending_stops", "scope", map[string]string{Relay: "SELECT", Worker: "SELECT, INSERT, UPDATE, DELETE", Watch: "SELECT"}},
	{"job_runs", "job", map[string]string{Worker: "SELECT, DELETE"}},
	{"processes", "role", map[string]string{Relay: all, Worker: all, Watch: all}},
	{"ops_conditions", "name", map[string]string{Relay: all, Worker: all, Watch: all}},
	{migrate.VersionTable, "version_id", map[string]string{Relay: "SELECT", Worker: "SELECT", Watch: "SELECT"}},
}

const all = "SELECT, INSERT, UPDATE, DELETE"

// rights tries each privilege with a statement that concerns no row, and takes it back.
func (d *database) rights(ctx context.Context) (_ []Finding, err error) {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	lacks := map[string][]string{}
	var gone []string
	for _, r := range needed {
		for privilege := range strings.SplitSeq(all, ", ") {
			has, err := may(ctx, tx, r, privilege)
			if errors.Is(err, errNoTable) {
				gone = append(gone, r.table)
				break
			}
			if err != nil {
				return nil, err
			}
			for role, privileges := range r.of {
				if !has && strings.Contains(privileges, privilege) {
					lacks[role] = append(lacks[role], privilege+" on "+r.table)
				}
			}
		}
	}
	if len(gone) > 0 {
		return find(Error, "take them from a backup; without one, `oncepost migrate --print` has the statements that make them",
			"tables are missing, although they were made: %s", strings.Join(gone, ", "))
	}
	return d.judge(lacks), nil
}

var errNoTable = errors.New("there is no such table")

// may reports whether the account has the privilege. The server looks at it before it looks for rows.
func may(ctx context.Context, tx *sql.Tx, r right, privilege string) (bool, error) {
	statement := map[string]string{
		"SELECT": "SELECT * FROM %[1]s WHERE FALSE",
		"INSERT": "INSERT IGNORE INTO %[1]s (%[2]s) SELECT '1' FROM DUAL WHERE FALSE",
		"UPDATE": "UPDATE %[1]s SET %[2]s = '1' WHERE FALSE",
		"DELETE": "DELETE FROM %[1]s WHERE FALSE",
	}[privilege]
	_, err := tx.ExecContext(ctx, fmt.Sprintf(statement, r.table, r.column))
	var my *mysql.MySQLError
	if errors.As(err, &my) && (my.Number == 1142 || my.Number == 1143) { // ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR
		return false, nil
	}
	if my != nil && my.Number == 1146 { // ER_NO_SUCH_TABLE; who has no right on it gets the one above
		return false, errNoTable
	}
	if err != nil {
		return false, fmt.Errorf("%s on %s: %w", privilege, r.table, err)
	}
	return true, nil
}

// judge says for which parts the account will do, and what it lacks for the others.
func (d *database) judge(lacks map[string][]string) (found []Finding) {
	var suits []string
	for _, role := range roles {
		if len(lacks[role]) == 0 {
			suits = append(suits, role)
		}
	}
	if len(suits) > 0 {
		found = append(found, Finding{Text: "the account has the rights of: " + strings.Join(suits, ", ")})
	}
	for _, role := range roles {
		if len(lacks[role]) == 0 {
			continue
		}
		f := Finding{Severity: Note, Text: fmt.Sprintf("the account lacks rights of a %s: %s", role, strings.Join(lacks[role], "; ")), Do: "if it is to be one's account, see docs/grants.md"}
		if slices.Contains(d.cfg.Roles, role) || len(d.cfg.Roles) == 0 && len(suits) == 0 {
			f.Severity, f.Do = Error, "give it the rights of docs/grants.md"
		}
		found = append(found, f)
	}
	return found
}

func (d *database) watching(ctx context.Context) ([]Finding, error) {
	if err := monitor.Check(ctx, d.db); err != nil {
		return find(Warning, "put that right; where it is a right, docs/grants.md has it",
			"a relay, worker or watch could not watch the others here, and would tell nobody of their death: %s", reason(err, d.cfg.Timeout))
	}
	return ok("all that watching does in the database was tried, and taken back")
}
