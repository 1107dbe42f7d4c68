package starter

import (
	"database/sql"
	"testing"

	"github.com/oncepost/oncepost/internal/mysqldb"
)

func openDSN(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
