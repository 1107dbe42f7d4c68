package main

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestAdviceWhereATableIsMissing(t *testing.T) {
	err := advised(fmt.Errorf("read outbox_failed: %w", &mysql.MySQLError{Number: noSuchTable, Message: "Table 'app.outbox_failed' doesn't exist"}))
	if !strings.HasSuffix(err.Error(), "doesn't exist: run `oncepost migrate`") {
		t.Error(err)
	}
}

// What a read-only server comes to says where to point the DSN, and is still the error that it was.
func TestAdviceOnAReadOnlyServer(t *testing.T) {
	err := advised(fmt.Errorf("delete from outbox_failed: %w", driver.ErrBadConn))
	if !errors.Is(err, driver.ErrBadConn) || !strings.Contains(err.Error(), "point ONCEPOST_MYSQL_DSN at the writer") {
		t.Error(err)
	}
	if advised(nil) != nil {
		t.Error("no error is one")
	}
}
