package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/schemas"
)

const noSuchTable = 1146 // ER_NO_SUCH_TABLE

// VersionError says that the tables are older than this oncepost needs.
type VersionError struct{ Have, Need int64 }

func (e *VersionError) Error() string {
	if e.Have == 0 {
		return "the database has no oncepost tables yet: run `oncepost migrate`"
	}
	return fmt.Sprintf("the database's tables are at version %d, this oncepost needs %d: run `oncepost migrate`", e.Have, e.Need)
}

// Check reports whether the tables are there, in the version that this program needs or a later one: an older relay goes
// on during a rolling upgrade, since migrations only add. It changes nothing. Its error is a *VersionError where
// migrating is what is missing.
func Check(ctx context.Context, db *sql.DB) error {
	have, err := current(ctx, db)
	if err != nil {
		return err
	}
	if need := Latest(); have < need {
		return &VersionError{Have: have, Need: need}
	}
	return nil
}

func current(ctx context.Context, db *sql.DB) (version int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+VersionTable+" WHERE is_applied").Scan(&version)
	if isNoSuchTable(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of oncepost's tables: %w", err)
	}
	return version, nil
}

func isNoSuchTable(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == noSuchTable
}

// Status is one migration and whether it has been applied.
type Status struct {
	Version int64
	File    string
	Applied bool
}

// List returns every migration this program knows, in order. A table by one of our names that is somebody else's is an error,
// as in [Up]: *ForeignTableError.
func List(ctx context.Context, db *sql.DB) ([]Status, error) {
	if err := refuseForeign(ctx, db); err != nil {
		return nil, err
	}
	have, err := current(ctx, db)
	if err != nil {
		return nil, err
	}
	var list []Status
	for _, file := range files() {
		v := number(file)
		list = append(list, Status{Version: v, File: file, Applied: v <= have})
	}
	return list, nil
}

// Latest is the version of the last migration.
func Latest() int64 {
	all := files()
	return number(all[len(all)-1])
}

// files are the embedded migrations in order. Reading an embedded folder cannot fail.
func files() []string {
	names, err := fs.Glob(schemas.MySQL(), "*.sql")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("embedded migrations: %v, %d found", err, len(names)))
	}
	return names
}

// number is the NNNNN of NNNNN_name.sql; a test checks every file's name.
func number(file string) int64 {
	digits, _, _ := strings.Cut(file, "_") // without one it is no number, which panics below
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("migration %s: its name does not begin with a number", file))
	}
	return n
}
