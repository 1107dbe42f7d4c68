package outbox

import (
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"
	"strings"
)

// ErrDuplicate is what every *DuplicateError matches with errors.Is.
var ErrDuplicate = errors.New("outbox: this message ID is in the table already")

// DuplicateError says that a row with this message ID is waiting in the table. It is best effort: once the earlier row
// has started it is gone from the table, a second one is accepted, and Temporal's workflow ID then keeps it from
// starting again. The transaction is still usable: MySQL undoes only the statement.
type DuplicateError struct {
	// MessageID is the ID in question; of several messages the first that the server refused.
	MessageID string
	// Err is the driver's own error (1062, ER_DUP_ENTRY).
	Err error
}

func (e *DuplicateError) Error() string {
	return "outbox: message " + e.MessageID + " is in the table already"
}

// Is reports that target is ErrDuplicate.
func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

// Unwrap returns the driver's error.
func (e *DuplicateError) Unwrap() error { return e.Err }

// InvalidError says which field of a Message breaks the contract, and how. Nothing was sent to the database.
type InvalidError struct {
	Field, Reason string
}

func (e *InvalidError) Error() string { return "outbox: " + e.Field + " " + e.Reason }

const dupEntry = 1062 // ER_DUP_ENTRY

// isDuplicate finds error 1062 without importing a driver: drivers' error types carry it as a numeric field Number
// (go-sql-driver/mysql) or Code (go-mysql-org/go-mysql).
func isDuplicate(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		for _, name := range []string{"Number", "Code"} {
			if f := v.FieldByName(name); f.IsValid() && f.CanUint() && f.Uint() == dupEntry {
				return true
			}
		}
	}
	return false
}

// duplicateID finds which of ids the server's text names: Duplicate entry '<shard>-<message ID>' for key '…'. The shard in
// front tells "a" from the end of "b-a".
func duplicateID(err error, ids []string) string {
	text := err.Error()
	for _, id := range ids {
		shard := crc32.ChecksumIEEE([]byte(id)) % FirstExpressShard
		for _, s := range []uint32{shard, shard + FirstExpressShard} {
			if strings.Contains(text, fmt.Sprintf("'%d-%s'", s, id)) {
				return id
			}
		}
	}
	return ids[0]
}
