package outbox

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/internal/testdb"
)

// A duplicate undoes its own statement and nothing else: the caller may go on, and commit.
func TestDuplicateLeavesTheTransactionUsable(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		enqueue(t, s.DB, message("taken"))
		tx := begin(t, s.DB)
		for _, m := range []Message{message("before"), message("taken"), message("after")} {
			_, err := Enqueue(t.Context(), tx, m)
			if (err != nil) != (m.ID == "taken") {
				t.Fatalf("%s: %v", m.ID, err)
			}
			if err != nil {
				checkDuplicate(t, err, "taken")
			}
		}
		commit(t, tx)
		got := []string{}
		for id := range newRelay(t, s.DB).byID(t) {
			got = append(got, id)
		}
		slices.Sort(got)
		if want := []string{"after", "before", "taken"}; !slices.Equal(got, want) {
			t.Errorf("messages %v, want %v", got, want)
		}
	})
}

func checkDuplicate(t *testing.T, err error, id string) {
	t.Helper()
	var duplicate *DuplicateError
	if !errors.Is(err, ErrDuplicate) || !errors.As(err, &duplicate) || duplicate.MessageID != id {
		t.Errorf("error %v, want ErrDuplicate of %s", err, id)
	}
	var my *mysql.MySQLError
	if !errors.As(err, &my) || my.Number != 1062 {
		t.Errorf("the driver's error cannot be reached: %v", err)
	}
}

// Of several messages the one is named that is in the table, and none is written.
func TestDuplicateOfManyIsNamed(t *testing.T) {
	ids := []string{"a", "b-a", "a-b", `a'for'key`, `quote"and\backslash`, "A"}
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		for _, taken := range ids {
			enqueue(t, s.DB, message(taken))
			var ms []Message
			for _, id := range ids {
				ms = append(ms, message(id))
			}
			tx := begin(t, s.DB)
			_, err := EnqueueMany(t.Context(), tx, ms)
			checkDuplicate(t, err, taken)
			commit(t, tx)
			if n := pending(t, s.DB); n != 1 {
				t.Errorf("%s: %d messages, want only the one that was there", taken, n)
			}
			testdb.Exec(t, s.DB, "DELETE FROM outbox_messages WHERE message_id < '~'")
		}
		_, err := EnqueueMany(t.Context(), s.DB, []Message{message("x"), message("same"), message("same")})
		checkDuplicate(t, err, "same")
	})
}

// Other failures are not taken for duplicates.
func TestOtherErrorsAreNotDuplicates(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		_, err := Table{Database: "no_such_database"}.Enqueue(t.Context(), s.DB, message("x"))
		var my *mysql.MySQLError
		if err == nil || errors.Is(err, ErrDuplicate) || !errors.As(err, &my) {
			t.Errorf("error %v, want the driver's own", err)
		}
	})
}
