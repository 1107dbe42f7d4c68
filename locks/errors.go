package locks

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// NotAcquiredError says that a lock was not to be had. The function has not run.
type NotAcquiredError struct {
	Key string
	// Holder is the connection ID of the session that had it last, 0 where the server did not tell.
	Holder int64
	// Waited is for how long.
	Waited time.Duration
	// Own says that the caller's own session holds it already: a lock is not re-entrant.
	Own bool
	// Deadlock says that waiting would have been for ever: the holder waits for a lock of this session.
	Deadlock bool
}

func (e *NotAcquiredError) Error() string {
	switch {
	case e.Own:
		return fmt.Sprintf("locks: %q is held by the caller itself (session %d); a lock is not re-entrant", e.Key, e.Holder)
	case e.Deadlock:
		return fmt.Sprintf("locks: %q was not taken: its holder waits for a lock of this session (deadlock)", e.Key)
	case e.Holder == 0:
		return fmt.Sprintf("locks: %q was not taken within %s", e.Key, e.Waited.Round(time.Millisecond))
	}
	return fmt.Sprintf("locks: %q is held by session %d and was not taken within %s", e.Key, e.Holder, e.Waited.Round(time.Millisecond))
}

// LostError is the cause (context.Cause) for which the context of a function under a lock has ended: the lock is not held any more,
// and another may have it.
type LostError struct {
	Keys []string
	Err  error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("locks: %s lost: %v", strings.Join(e.Keys, ", "), e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// Error numbers of the servers (MySQL 9.7's errmsg and MariaDB 10.11's, seen).
const (
	mysqlUserLockDeadlock = 3058
	mariadbDeadlock       = 1213
	lockWaitTimeout       = 1205
	mysqlIdleTimeout      = 4031
	mariadbKilled         = 1927
	mysqlSessionKilled    = 3169
	serverShutdown        = 1053
	mysqlWrongName        = 4163
	mariadbWrongName      = 1059
)

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// deadlock: the servers have numbers of their own for it.
func deadlock(err error) bool {
	switch number(err) {
	case mysqlUserLockDeadlock, mariadbDeadlock, lockWaitTimeout:
		return true
	}
	return false
}

// misnamed: a server that takes no name of Name's making.
func misnamed(err error) bool {
	return number(err) == mysqlWrongName || number(err) == mariadbWrongName
}

// gone reports that the session has ended.
func gone(err error) bool {
	switch number(err) {
	case mysqlIdleTimeout, mariadbKilled, mysqlSessionKilled, serverShutdown:
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, mysql.ErrInvalidConn)
}
