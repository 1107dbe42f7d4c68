package mysqldb

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func openDB(t *testing.T, c Config) *sql.DB {
	t.Helper()
	db, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, db)
	return db
}

// hostile sets everything that Open must override.
const hostile = "?parseTime=true&loc=Asia%2FSeoul&time_zone=%27%2B09%3A00%27&sql_mode=%27%27&charset=latin1" +
	"&collation=latin1_swedish_ci&autocommit=0&clientFoundRows=true&multiStatements=true&interpolateParams=true" +
	"&rejectReadOnly=false&timeout=1h&readTimeout=1h&writeTimeout=1h&transaction_isolation=%27SERIALIZABLE%27"

func TestSettingsAreForcedOnTheSession(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		db := openDB(t, Config{DSN: s.DSN + hostile})
		plain := openDB(t, Config{DSN: s.DSN})
		const settings = "SELECT CONCAT_WS('|', @@time_zone, @@autocommit + 0, @@character_set_client, @@character_set_results)"
		for _, pool := range []*sql.DB{db, plain} {
			if got, want := testdb.Value[string](t, pool, settings), "+00:00|1|utf8mb4|utf8mb4"; got != want {
				t.Errorf("session %s, want %s", got, want)
			}
		}
		if got, want := testdb.Value[string](t, db, "SELECT @@sql_mode"), testdb.Value[string](t, plain, "SELECT @@sql_mode"); got != want {
			t.Errorf("sql_mode %q, want the server's %q", got, want)
		}
		// parseTime=false: a time comes as the server's own text.
		if got := testdb.Value[string](t, db, "SELECT CAST('2026-11-01 05:30:00.123456' AS DATETIME(6))"); got != "2026-11-01 05:30:00.123456" {
			t.Errorf("a time came as %q", got)
		}
		if _, err := db.ExecContext(t.Context(), "DO 1; DO 2"); err == nil {
			t.Error("two statements in one were accepted")
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (a INT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		// clientFoundRows=false: an UPDATE that changes nothing affects no row.
		res, err := db.ExecContext(t.Context(), "UPDATE t SET a = 1")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := res.RowsAffected(); n != 0 || err != nil {
			t.Errorf("%d rows affected, %v", n, err)
		}
	})
}

func TestSettingsAreForcedOnTheDriver(t *testing.T) {
	cfg, err := parse(Config{DSN: "u:p@tcp(db.example.test:3306)/app" + hostile})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.ParseTime || cfg.ClientFoundRows || cfg.MultiStatements || cfg.InterpolateParams || !cfg.RejectReadOnly || cfg.Loc != time.UTC {
		t.Errorf("config %+v", cfg)
	}
	if cfg.Timeout != dialTimeout || cfg.ReadTimeout != ioTimeout || cfg.WriteTimeout != ioTimeout {
		t.Errorf("time-outs %s, %s, %s", cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout)
	}
	if cfg, err = parse(Config{DSN: "u:p@tcp(db.example.test:3306)/app?readTimeout=7s&writeTimeout=8s"}); err != nil {
		t.Fatal(err)
	}
	if cfg.ReadTimeout != 7*time.Second || cfg.WriteTimeout != 8*time.Second {
		t.Errorf("shorter time-outs became %s, %s", cfg.ReadTimeout, cfg.WriteTimeout)
	}
}

func TestErrorsHelpAndHideThePassword(t *testing.T) {
	const password = "s3cret/pa:ss"
	noPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(noPEM, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config Config
		says   string
	}{
		"no DSN":           {Config{}, "is not set"},
		"a URL":            {Config{DSN: "mysql://u:" + password + "@db.example.test:3306/app"}, "must look like"},
		"no slash":         {Config{DSN: "u:" + password + "@tcp(db.example.test:3306)"}, "must look like"},
		"no database":      {Config{DSN: "u:" + password + "@tcp(db.example.test:3306)/"}, "names no database"},
		"unknown TLS name": {Config{DSN: "u:" + password + "@tcp(db.example.test:3306)/app?tls=nothing"}, "DSN"},
		"bad parameter":    {Config{DSN: "u:" + password + "@tcp(db.example.test:3306)/app?timeout=soon"}, "must look like"},
		"CA file missing":  {Config{DSN: "u:" + password + "@tcp(db.example.test:3306)/app", TLSCA: "/no/such/ca.pem"}, "/no/such/ca.pem"},
		"CA file no PEM":   {Config{DSN: "u:" + password + "@tcp(db.example.test:3306)/app", TLSCA: noPEM}, "no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.config)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %q, want one that says %q, without the password", err, c.says)
			}
		})
	}
}

// The server's own refusal of a password does not quote it either, nor does an address where nobody listens.
func TestConnectErrorsHideThePassword(t *testing.T) {
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		for _, dsn := range []string{
			"nobody:s3cret@tcp(" + s.Server.Addr() + ")/" + s.Name,
			"nobody:s3cret@tcp(127.0.0.1:1)/" + s.Name,
		} {
			err := openDB(t, Config{DSN: dsn}).PingContext(t.Context())
			if err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v", err)
			}
		}
	})
}

// Forced is what a start-up message shows: it must not promise what parse does not do.
func TestForcedSaysWhatIsForced(t *testing.T) {
	cfg, err := parse(Config{DSN: "u:p@tcp(db.example.test:3306)/app" + hostile})
	if err != nil {
		t.Fatal(err)
	}
	dsn := cfg.FormatDSN()
	for _, part := range []string{"charset=utf8mb4", "rejectReadOnly=true", "time_zone=%27%2B00%3A00%27", "timeout=5s", "readTimeout=30s", "writeTimeout=30s"} {
		if !strings.Contains(dsn, part) {
			t.Errorf("%s lacks %s", dsn, part)
		}
	}
	for _, part := range []string{"parseTime", "clientFoundRows", "multiStatements", "interpolateParams", "latin1", "sql_mode", "SERIALIZABLE", "loc="} {
		if strings.Contains(dsn, part) {
			t.Errorf("%s has %s", dsn, part)
		}
	}
}
