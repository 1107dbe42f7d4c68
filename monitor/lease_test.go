package monitor

import (
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/testdb"
)

// Who has begun to tell has the time that an alert takes: nobody else tells meanwhile, and when it is over without an end, another does,
// and the first can note nothing any more.
func TestATellingIsLeased(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		if _, err := migrate.Up(t.Context(), s.DB); err != nil {
			t.Fatal(err)
		}
		first, second := &book{db: s.DB, id: newID()}, &book{db: s.DB, id: newID()}
		k := key{name: CondNoRelay}
		wants := func(what string, mine bool, err error, want bool) {
			t.Helper()
			if err != nil || mine != want {
				t.Fatalf("%s: %t, want %t: %v", what, mine, want, err)
			}
		}
		left := func(who string) {
			t.Helper()
			ms := testdb.Value[int](t, s.DB, "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(6), telling_ends_at) DIV 1000 FROM ops_conditions")
			if d := time.Duration(ms) * time.Millisecond; d <= 20*time.Second || d > tellingFor {
				t.Errorf("%s has %s to tell", who, d)
			}
		}
		raise := func(b *book) (bool, error) { return b.raise(t.Context(), Condition{Name: CondNoRelay}) }
		mine, err := raise(first)
		wants("the first raises it", mine, err, true)
		left("the first")
		mine, err = raise(second)
		wants("the second raises it too", mine, err, false)
		mine, err = second.instead(t.Context(), k, false)
		wants("the second takes it while the first tells", mine, err, false)
		testdb.Exec(t, s.DB, "UPDATE ops_conditions SET telling_ends_at = NOW(6)")
		mine, err = second.instead(t.Context(), k, false)
		wants("the second takes it when the first has not managed it", mine, err, true)
		left("the second")
		mine, err = first.instead(t.Context(), k, false)
		wants("the first takes it back", mine, err, false)
		if err := first.told(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM ops_conditions WHERE told_at IS NOT NULL"); n != 0 {
			t.Error("the first has noted a telling that is the second's")
		}
	})
}
