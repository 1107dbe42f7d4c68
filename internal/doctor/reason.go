package doctor

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// reason says why a check could not be made.
func reason(err error, timeout time.Duration) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", timeout)
	case errors.Is(err, context.Canceled):
		return "it was broken off"
	case errors.Is(err, driver.ErrBadConn):
		return "the database ended the connection, or allows no writing"
	}
	return err.Error()
}
