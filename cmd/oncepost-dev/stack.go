package main

import (
	"context"
	"errors"

	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/devstack"
	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// stackFlags say which stack; both commands have them.
type stackFlags struct {
	Dir       string `name:"dir" env:"ONCEPOST_DEV_DIR" default:".oncepost-dev" type:"path" help:"The folder that keeps everything over restarts; removing it forgets all."`
	DSN       string `name:"mysql-dsn" env:"ONCEPOST_DEV_MYSQL_DSN" placeholder:"DSN" help:"A database of your own: user:password@tcp(host:3306)/database. oncepost's tables are made in it. Default: a private server."`
	Database  string `name:"database" env:"ONCEPOST_DEV_DATABASE" enum:",mysql,mariadb" default:"" placeholder:"mysql|mariadb" help:"The private server: mysql or mariadb. Default: the folder's last one, or what is on PATH, or mysql. It is taken from PATH, a container engine, or a download, whichever comes first."`
	MailFrom  string `name:"mail-from" env:"ONCEPOST_DEV_MAIL_FROM" default:"oncepost <oncepost@example.com>" help:"The sender of the mails."`
	Templates string `name:"templates" env:"ONCEPOST_DEV_TEMPLATES" type:"existingdir" placeholder:"DIR" help:"Templates beside the built-in ones: DIR/<event type>/<locale>/{subject.txt,body.txt,body.html}."`
	Rebind    bool   `name:"rebind" env:"ONCEPOST_DEV_REBIND" help:"Accept this folder's Temporal for a database of your own that was used with another one."`
}

// with starts the stack, runs f on it, and stops it. ctx ending is the normal end and no error; a part that dies is one.
func (f stackFlags) with(a *app, use func(ctx context.Context, s *devstack.Stack) error) (err error) {
	if f.DSN != "" && f.Database != "" { // kong's xor takes an enum's empty default for a choice
		return config.UsageError{Err: errors.New("--mysql-dsn and --database cannot be used together: one is your own database, the other a private one")}
	}
	logger, logFile, err := openLog(f.Dir, a.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()
	stack, err := devstack.Start(a.ctx, devstack.Options{
		Dir: f.Dir, DSN: f.DSN, Database: mysqlserver.Flavour(f.Database), MailFrom: f.MailFrom, Templates: f.Templates,
		Rebind: f.Rebind, Progress: a.stdout, Logger: logger,
	})
	if err == devstack.ErrInterrupted { //nolint:errorlint // and nothing else went wrong: that is the user's Ctrl-C
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(a.ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-stack.Dead():
			cancel()
		case <-ctx.Done():
		}
	}()
	err = use(ctx, stack)
	cancel()
	<-watched
	if dead := stack.Err(); dead != nil {
		err = dead // what use met after that is its consequence
	}
	return errors.Join(err, stack.Stop())
}
