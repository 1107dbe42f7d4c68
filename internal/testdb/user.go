package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// User makes an account that may do exactly what grants say, on this database only, and returns its DSN. A grant is a
// list of privileges for the whole database, "SELECT, INSERT", or for one table, "INSERT (event_type, payload) ON
// outbox_messages"; the table must exist on MySQL and MariaDB alike. Without grants it can log in and no more, not
// even use the database. The account is dropped at the end of the test.
func (s *Schema) User(grants ...string) string {
	s.t.Helper()
	name := "u_" + strings.ToLower(rand.Text()[:12])
	password := rand.Text()
	account := fmt.Sprintf("'%s'@'%%'", name)
	root := Open(s.t, s.Server.DSN(""))
	Exec(s.t, root, fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", account, password))
	s.t.Cleanup(func() { s.dropUser(account) })
	for _, grant := range grants {
		Exec(s.t, root, grantStatement(grant, s.Name, account))
	}
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = name, password, "tcp", s.Server.Addr()
	if len(grants) > 0 {
		c.DBName = s.Name
	}
	return c.FormatDSN()
}

func grantStatement(grant, schema, account string) string {
	privileges, table, ok := strings.Cut(grant, " ON ")
	if !ok {
		table = "*"
	}
	return fmt.Sprintf("GRANT %s ON %s.%s TO %s", privileges, schema, table, account)
}

// dropUser leaves an account on a server that the test has ended.
func (s *Schema) dropUser(account string) {
	select {
	case <-s.Server.Done():
		return
	default:
	}
	s.cleanUp(func(ctx context.Context, root *sql.DB) error { return dropped(ctx, root, "USER "+account) })
}

// asMySQL returns the server's own error within err.
func asMySQL(err error) (*mysql.MySQLError, bool) {
	var server *mysql.MySQLError
	ok := errors.As(err, &server)
	return server, ok
}
