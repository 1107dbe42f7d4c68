package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/oncepost/oncepost/internal/devstack"
)

type upCmd struct {
	stackFlags `embed:""`
}

func (c *upCmd) Run(a *app) error {
	return c.with(a, func(ctx context.Context, s *devstack.Stack) error {
		addresses, err := s.Addresses()
		if err != nil {
			return err
		}
		fmt.Fprint(a.stdout, table(addresses, c.Dir), usage(addresses))
		stay(ctx, a)
		return nil
	})
}

// stay keeps the stack up until it is to end.
func stay(ctx context.Context, a *app) {
	fmt.Fprint(a.stdout, "\nCtrl-C stops everything.\n")
	<-ctx.Done()
	fmt.Fprint(a.stdout, "\nstopping\n")
}

// table says where everything is.
func table(at devstack.Addresses, dir string) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, line := range [][2]string{
		{"Temporal web UI", at.WebUI},
		{"Inbox", at.Inbox},
		{"Status page", at.Status},
		{"MySQL DSN", at.DSN},
		{"Temporal", at.Temporal + ", namespace " + at.Namespace},
		{"SES endpoint", at.SES},
		{"Log", filepath.Join(dir, logName)},
	} {
		fmt.Fprintf(&b, "  %-16s %s\n", line[0], line[1])
	}
	return b.String()
}

// usage shows how to send a mail. Each block can be copied as it is.
func usage(at devstack.Addresses) string {
	return fmt.Sprintf(`
Send a mail:

  %[1]s
  %[2]s enqueue welcome --payload '%[3]s'

or the same from plain SQL, in any transaction:

  %[4]s <<'SQL'
  INSERT INTO outbox_messages (event_type, payload) VALUES
    ('welcome', '%[3]s');
  SQL

A relay or a worker of your own on this stack, and status, doctor, failed, explain and resolve, need, beside ONCEPOST_MYSQL_DSN:

  export TEMPORAL_ADDRESS=%[5]s TEMPORAL_NAMESPACE=%[6]s
  export AWS_ENDPOINT_URL_SES=%[7]s AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
  export ONCEPOST_MAIL_FROM="Example <mail@example.com>"
`, exportDSN(at), oncepost(os.Args[0]), welcome, client(at), at.Temporal, at.Namespace, at.SES)
}

const welcome = `{"company_id": "c_42", "company_name": "Example Ltd", "email": "first.user@example.com"}`

// oncepost is how to call the production binary: it is built beside this one, which was called as self.
func oncepost(self string) string {
	const name = "oncepost"
	dir := filepath.Dir(self)
	if dir == "." && !strings.HasPrefix(self, ".") { // found on PATH
		return name
	}
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil { // built alone, by `go run`
		return name
	}
	return dir + string(filepath.Separator) + name
}

// exportDSN is the line that names the database, or says how to write it: a password is not shown.
func exportDSN(at devstack.Addresses) string {
	if at.Password {
		return "# set ONCEPOST_MYSQL_DSN to the DSN you gave"
	}
	return fmt.Sprintf("export ONCEPOST_MYSQL_DSN='%s'", at.DSN)
}

// client is the command line of MySQL's own client.
func client(at devstack.Addresses) string {
	where := "--socket=" + at.Addr
	if host, port, ok := strings.Cut(at.Addr, ":"); ok && at.Network == "tcp" {
		where = fmt.Sprintf("--protocol=tcp -h %s -P %s", host, port)
	}
	password := " -p"
	if at.Private {
		password = ""
	}
	return fmt.Sprintf("mysql %s -u %s%s %s", where, at.User, password, at.Database)
}
