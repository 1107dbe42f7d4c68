package starter

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

// serversDSN is the schema's DSN with other parameters.
func serversDSN(s *testdb.Schema, parameters string) string {
	dsn, _, _ := strings.Cut(s.DSN, "?")
	return dsn + "?" + parameters
}

// A service that runs a relay of its own gives it the pool that it has.
func TestAServicesOwnPool(t *testing.T) {
	for name, parameters := range map[string]string{
		"plain": "", "parseTime": "parseTime=true", "zone": "time_zone='%2B09%3A00'", "latin1": "charset=latin1",
		"more": "clientFoundRows=true&interpolateParams=true",
	} {
		t.Run(name, func(t *testing.T) {
			eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
				db := testdb.Open(t, serversDSN(s, parameters))
				rec := newRecorder()
				startRelayOn(t, db, rec, quick(), nil)
				large := message("large")
				large.Payload = map[string]string{"a": "é😀" + strings.Repeat("x", 9000)}
				enqueue(t, s, message("small"), large)
				rec.await(t, "both", func(r *recorder) bool { return r.starts["small"]+r.starts["large"] == 2 })
				if got := rec.payloads["large"]; !strings.Contains(got, "é😀") {
					t.Errorf("the large payload was changed: %.40s", got)
				}
				testdb.Eventually(t, "an empty table", func() bool { return pending(t, s) == 0 })
			})
		})
	}
}

func TestASmallPoolIsRefused(t *testing.T) {
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:1)/app")
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, db)
	for most, good := range map[int]bool{0: true, MinConnections: true, MinConnections - 1: false, 1: false} {
		db.SetMaxOpenConns(most)
		if _, err := New(db, newRecorder(), Config{}); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "connections") {
			t.Errorf("a pool of %d connections: %v", most, err)
		}
	}
}
