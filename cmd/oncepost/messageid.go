package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"

	"github.com/go-sql-driver/mysql"
	"go.temporal.io/api/serviceerror"

	"github.com/oncepost/oncepost/internal/config"
)

// askable is wider than message IDs: child workflows of a user's own types may be asked for, too. Temporal allows 1000 bytes.
var askable = regexp.MustCompile(`^[!-~]{1,1000}\z`)

// checkIDs refuses what neither the database nor Temporal can look for, before they say so in words of their own.
func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !askable.MatchString(id) {
			return config.UsageError{Err: fmt.Errorf("%.100q is no message ID: they are 1 to 128 printable ASCII characters without spaces", id)}
		}
	}
	return nil
}

const noSuchTable = 1146 // ER_NO_SUCH_TABLE

// advised adds to an error of a command about failures what to do about it.
func advised(err error) error {
	var away *serviceerror.Unavailable
	var my *mysql.MySQLError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrBadConn): // what a read-only server comes to; see internal/mysqldb
		return fmt.Errorf("the database has ended the connection, or allows no writing, as a replica or a demoted primary: "+
			"point ONCEPOST_MYSQL_DSN at the writer, or try again: %w", err)
	case errors.As(err, &my) && my.Number == noSuchTable:
		return fmt.Errorf("%w: run `oncepost migrate`", err)
	case errors.As(err, &away) || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w; where Temporal is away, --kind row asks the database alone", err)
	}
	return err
}
