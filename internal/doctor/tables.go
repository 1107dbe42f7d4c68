package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
)

var (
	createTable = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\) ENGINE=InnoDB;`)
	constraint  = regexp.MustCompile(`CONSTRAINT (\w+) CHECK`)
)

// ours are oncepost's tables with the names of their CHECK constraints, as the migrations make them.
func ours() (map[string][]string, error) {
	tables := map[string][]string{}
	err := fs.WalkDir(schemas.MySQL(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := fs.ReadFile(schemas.MySQL(), path)
		if err != nil {
			return err
		}
		for _, table := range createTable.FindAllStringSubmatch(string(b), -1) {
			tables[table[1]] = nil
			for _, c := range constraint.FindAllStringSubmatch(table[2], -1) {
				tables[table[1]] = append(tables[table[1]], c[1])
			}
		}
		return nil
	})
	return tables, err
}

func (d *database) engine(ctx context.Context) ([]Finding, error) {
	tables, err := ours()
	if err != nil {
		return nil, err
	}
	engines, err := d.pairs(ctx, "SELECT TABLE_NAME, COALESCE(ENGINE, 'none') FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		if engine, there := engines[table]; there && engine != "InnoDB" { // an account sees only what it has a right on
			wrong = append(wrong, table+" ("+engine+")")
		}
	}
	if len(wrong) > 0 {
		return find(Error, "run ALTER TABLE … ENGINE=InnoDB on each",
			"these tables have an engine without transactions, so that a row that is rolled back stays: %s", strings.Join(wrong, ", "))
	}
	return ok("the tables are InnoDB")
}

// columns looks at those that hold what producers write.
func (d *database) columns(ctx context.Context) ([]Finding, error) {
	sets, err := d.pairs(ctx, `SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME), COALESCE(CHARACTER_SET_NAME, 'none') FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('outbox_messages', 'outbox_failed') AND COLUMN_NAME IN ('payload', 'headers')`)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, column := range slices.Sorted(maps.Keys(sets)) {
		if sets[column] != "utf8mb4" {
			wrong = append(wrong, column+" ("+sets[column]+")")
		}
	}
	if len(wrong) > 0 {
		return find(Error, "change them back, to MEDIUMTEXT and TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
			"these columns are not utf8mb4, and so lose characters that their character set lacks: %s", strings.Join(wrong, ", "))
	}
	if len(sets) == 0 {
		return find(Note, "", "this account sees no column of the outbox, so that their character set could not be checked")
	}
	return ok("payloads and headers are kept as utf8mb4")
}

// constraints: they are what refuses a bad row at its INSERT, whatever the producer's language and sql_mode.
func (d *database) constraints(ctx context.Context) ([]Finding, error) {
	tables, err := ours()
	if err != nil {
		return nil, err
	}
	query := `SELECT CONSTRAINT_NAME, ENFORCED FROM information_schema.TABLE_CONSTRAINTS
 WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_messages' AND CONSTRAINT_TYPE = 'CHECK'`
	if d.kind == outbox.MariaDB {
		query = `SELECT CONSTRAINT_NAME, IF(@@global.check_constraint_checks, 'YES', 'NO') FROM information_schema.CHECK_CONSTRAINTS
 WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_messages'`
	}
	enforced, err := d.pairs(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(enforced) == 0 {
		return find(Note, "run oncepost doctor once with the account of oncepost migrate",
			"this account sees no CHECK constraint of outbox_messages; another one might")
	}
	var missing, off []string
	for _, name := range tables["outbox_messages"] {
		switch enforced[name] {
		case "":
			missing = append(missing, name)
		case "NO":
			off = append(off, name)
		}
	}
	return constraintFindings(missing, off)
}

func constraintFindings(missing, off []string) (found []Finding, err error) {
	const so = "a bad message would be found out after its commit, when its producer cannot be told any more"
	if len(missing) > 0 {
		found = append(found, Finding{
			Severity: Error, Text: fmt.Sprintf("outbox_messages lacks CHECK constraints, and %s: %s", so, strings.Join(missing, ", ")),
			Do: "add them again as `oncepost migrate --print` has them",
		})
	}
	if len(off) > 0 {
		found = append(found, Finding{
			Severity: Error, Text: fmt.Sprintf("these CHECK constraints of outbox_messages are not enforced, and %s: %s", so, strings.Join(off, ", ")),
			Do: "on MySQL run ALTER TABLE outbox_messages ALTER CHECK … ENFORCED for each; on MariaDB set check_constraint_checks to ON",
		})
	}
	if len(found) > 0 {
		return found, nil
	}
	return ok("the CHECK constraints of outbox_messages are there, and enforced")
}

// pairs reads a query of two columns.
func (d *database) pairs(ctx context.Context, query string) (map[string]string, error) {
	rows, err := d.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, rows.Err()
}
