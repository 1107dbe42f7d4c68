package starter

import (
	"database/sql"
	"testing"

	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
)

func openDSN(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, db)
	return db
}
