package main

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
)

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
