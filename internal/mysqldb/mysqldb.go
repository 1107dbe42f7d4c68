// Package mysqldb opens the database that holds oncepost's tables, with the connection settings that its guarantees need
// whatever the DSN says. It knows no table.
package mysqldb

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Config says how to reach the server.
type Config struct {
	// DSN is in go-sql-driver/mysql's form: user:password@tcp(host:3306)/database. A database is required.
	DSN string
	// TLSCA is a PEM file of the certificate authorities to trust; with it, TLS is required and verified.
	// Default: what the DSN's tls parameter says.
	TLSCA string
	// Logger gets what the driver has to say of a broken connection. Default slog.Default().
	Logger *slog.Logger
}

// Backstops on the socket, for a server that has gone silent; every call has a shorter deadline of its own.
const (
	dialTimeout = 5 * time.Second
	ioTimeout   = 30 * time.Second
)

// Forced are the settings that Open sets over the DSN, for a start-up message.
const Forced = "charset=utf8mb4 parseTime=false loc=UTC time_zone=+00:00 lock_wait_timeout=10 clientFoundRows=false multiStatements=false " +
	"interpolateParams=false rejectReadOnly=true timeout=5s readTimeout<=30s writeTimeout<=30s"

// Open returns a pool, without connecting yet. An error says what is wrong with the DSN and never shows its password.
func Open(c Config) (*sql.DB, error) {
	cfg, err := parse(c)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(8)                  // as many as read large rows at once
	db.SetConnMaxLifetime(5 * time.Minute) // a pool follows a failover even while nothing fails
	return db, nil
}

// The server's answers to a DSN that will not do however long one waits.
const (
	accessDeniedToDatabase = 1044 // ER_DBACCESS_DENIED_ERROR
	accessDenied           = 1045 // ER_ACCESS_DENIED_ERROR
	unknownDatabase        = 1049 // ER_BAD_DB_ERROR
	accessDeniedToTable    = 1142 // ER_TABLEACCESS_DENIED_ERROR
)

// Refused reports whether err is the server's answer that this account or database is not to be had. Any other error may
// pass while one waits.
func Refused(err error) bool {
	var my *mysql.MySQLError
	if !errors.As(err, &my) {
		return false
	}
	switch my.Number {
	case accessDeniedToDatabase, accessDenied, unknownDatabase, accessDeniedToTable:
		return true
	}
	return false
}

// driverLog is where the driver's own log goes: it knows no levels, and speaks of connections that have broken.
type driverLog struct{ to *slog.Logger }

// Print implements mysql.Logger.
func (l driverLog) Print(v ...any) { l.to.Warn("MySQL connection", "detail", fmt.Sprint(v...)) }

func parse(c Config) (*mysql.Config, error) {
	if c.DSN == "" {
		return nil, errors.New("is not set: give one like user:password@tcp(127.0.0.1:3306)/app")
	}
	cfg, err := mysql.ParseDSN(c.DSN)
	if err != nil { // the driver's text can quote the DSN, and with it the password
		return nil, errors.New("the DSN cannot be parsed: it must look like user:password@tcp(127.0.0.1:3306)/app?tls=true")
	}
	if cfg.DBName == "" {
		return nil, fmt.Errorf("the DSN for %s names no database: end it with /name", cfg.Addr)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	cfg.Logger = driverLog{c.Logger.With("component", "mysql")}
	if err := force(cfg); err != nil {
		return nil, err
	}
	if c.TLSCA != "" {
		if err := trust(cfg, c.TLSCA); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

func force(cfg *mysql.Config) error {
	cfg.ParseTime = false // times stay the server's text, and are never converted here
	cfg.Loc = time.UTC
	cfg.ClientFoundRows = false
	cfg.MultiStatements = false
	cfg.InterpolateParams = false
	cfg.RejectReadOnly = true // an error 1290 or 1792 after a failover gives a new connection
	cfg.Timeout = dialTimeout
	cfg.ReadTimeout = backstop(cfg.ReadTimeout)
	cfg.WriteTimeout = backstop(cfg.WriteTimeout)
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	for name := range cfg.Params { // session variables of the DSN that would undo what follows
		switch strings.ToLower(name) {
		case "time_zone", "lock_wait_timeout", "sql_mode", "autocommit", "tx_isolation", "transaction_isolation":
			delete(cfg.Params, name)
		}
	}
	cfg.Params["time_zone"] = "'+00:00'"
	// The server goes on with a statement whose client has given up. Under a long table lock they would pile up until it takes no
	// more connections; its own default is a year.
	cfg.Params["lock_wait_timeout"] = "10"
	cfg.ConnectionAttributes = "program_name:oncepost"
	// The server would send '?' for every character of a payload that the DSN's charset lacks.
	return cfg.Apply(mysql.Charset("utf8mb4", ""))
}

func backstop(d time.Duration) time.Duration {
	if d <= 0 || d > ioTimeout {
		return ioTimeout
	}
	return d
}

func trust(cfg *mysql.Config, file string) error {
	pem, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("read the certificate authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no PEM certificate", file)
	}
	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		host = cfg.Addr
	}
	cfg.TLS = &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	cfg.AllowFallbackToPlaintext = false
	return nil
}
