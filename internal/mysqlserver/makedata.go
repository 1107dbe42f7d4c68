package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// accountsSQL runs once in a new data folder: root by TCP without a password and no other account. The server asks no
// name service, so 127.0.0.1 is not localhost to it. One statement a line, as --init-file wants them.
const accountsSQL = `CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
`

// mariadbAccountsSQL removes the anonymous accounts that MariaDB creates: they come before 'name'@'%' when accounts
// are matched, so a user made by a test could not log in.
const mariadbAccountsSQL = `DELETE FROM mysql.global_priv WHERE User='';
FLUSH PRIVILEGES;
`

// smallLogFlags keep a new data folder small, since it is copied for each server. A server grows its log again.
var smallLogFlags = map[Flavour]string{MySQL: "--innodb-redo-log-capacity=8M", MariaDB: "--innodb-log-file-size=8M"}

// makeData creates a data folder at dst: the server's own initialisation, and one start and orderly stop, after which
// its accounts, certificates and logs are as every later start wants them.
func makeData(ctx context.Context, r Root, dst string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(dst), filepath.Base(dst)+".new.")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	data := filepath.Join(tmp, "data")
	if err := os.MkdirAll(filepath.Join(tmp, "tmp"), 0o750); err != nil {
		return err
	}
	if err := initialise(ctx, r, data); err != nil {
		return fmt.Errorf("initialise a %s data folder: %w", r.Flavour, err)
	}
	if err := firstStart(ctx, r, tmp); err != nil {
		return fmt.Errorf("first start of a %s data folder: %w", r.Flavour, err)
	}
	if err := removeOwn(data); err != nil {
		return err
	}
	return replaceDir(data, dst)
}

// removeOwn removes what each copy makes anew: the server's identity, and the doublewrite files, which are large and
// hold nothing after an orderly stop.
func removeOwn(data string) error {
	files, err := filepath.Glob(filepath.Join(data, "#ib_*.dblwr"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(data, "auto.cnf")) {
		if err := os.RemoveAll(file); err != nil {
			return err
		}
	}
	return nil
}

func firstStart(ctx context.Context, r Root, dir string) error {
	accounts := accountsSQL
	if r.Flavour == MariaDB {
		accounts = mariadbAccountsSQL + accountsSQL
	}
	file := filepath.Join(dir, "accounts.sql")
	if err := os.WriteFile(file, []byte(accounts), 0o600); err != nil {
		return err
	}
	o := Options{Root: r, Dir: dir, Flags: []string{"--init-file=" + file, smallLogFlags[r.Flavour]}}
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := startProvisioned(ctx, o)
	if err != nil {
		return err
	}
	return s.Stop(ctx)
}

// initialise makes the system tables in the folder data, which does not exist yet.
func initialise(ctx context.Context, r Root, data string) error {
	argv := append(append([]string{}, r.exe...), placeFlags(r, data)...)
	argv = append(argv, smallLogFlags[r.Flavour])
	var stdin io.Reader
	switch {
	case r.Flavour == MySQL:
		argv = append(argv, "--initialize-insecure")
	case r.installDB != "":
		argv = append([]string{r.installDB}, placeFlags(r, data)...)
		argv = append(argv, "--auth-root-authentication-method=normal", "--skip-test-db")
	default:
		sql, err := bootstrapSQL(r.shareDir)
		if err != nil {
			return err
		}
		stdin = strings.NewReader(sql)
		argv = append(argv, "--bootstrap", "--skip-grant-tables", "--enforce-storage-engine=", "--max-allowed-packet=8M")
		if err := os.Mkdir(data, 0o750); err != nil {
			return err
		}
	}
	return runToEnd(ctx, argv, stdin)
}

// bootstrapSQL is what mariadb-install-db feeds to mariadbd --bootstrap. That script would start the fetched program
// without its own loader, so its work is done here. MariaDB 11 renamed the files.
func bootstrapSQL(share string) (string, error) {
	var sql strings.Builder
	sql.WriteString("CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n")
	for _, name := range []string{"system_tables", "performance_tables", "system_tables_data", "sys_schema"} {
		text, err := os.ReadFile(filepath.Join(share, "mysql_"+name+".sql"))
		if errors.Is(err, os.ErrNotExist) {
			text, err = os.ReadFile(filepath.Join(share, "mariadb_"+name+".sql"))
		}
		if err != nil {
			return "", err
		}
		sql.Write(text)
	}
	return sql.String(), nil
}

// runToEnd runs a program that must not outlive us either, and quotes its last output when it does not succeed.
func runToEnd(ctx context.Context, argv []string, stdin io.Reader) error {
	out := &tailWriter{limit: 4000}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, out
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		killErr := cmd.Process.Kill()
		<-p.done
		return errors.Join(ctx.Err(), killErr)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), p.err, out)
	}
	return nil
}
