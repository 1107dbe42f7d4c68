package devstack

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// startDatabase starts the private server, or takes the user's, and opens the pool.
func (s *Stack) startDatabase(ctx context.Context) (detail string, err error) {
	detail = "your own"
	s.dsn = s.opts.DSN
	if s.dsn == "" {
		if detail, err = s.startPrivate(ctx); err != nil {
			return "", err
		}
	}
	if s.db, err = mysqldb.Open(mysqldb.Config{DSN: s.dsn, Logger: s.opts.Logger}); err != nil {
		return "", fmt.Errorf("--mysql-dsn (ONCEPOST_DEV_MYSQL_DSN): %w", err)
	}
	s.parts.add("", s.db.Close)
	if err := s.db.PingContext(ctx); err != nil {
		return "", err
	}
	return detail, nil
}

func (s *Stack) startPrivate(ctx context.Context) (string, error) {
	root, err := s.locate(ctx)
	if err != nil {
		return "", err
	}
	port := s.memory.MySQLPorts[root.Flavour]
	if port != 0 && !free(ctx, port) {
		port = 0
	}
	server, err := mysqlserver.Start(ctx, mysqlserver.Options{
		Root: root, Dir: filepath.Join(s.opts.Dir, string(root.Flavour)), Port: port,
		Logger: s.opts.Logger.With("component", "database"),
	})
	if err != nil {
		return "", err
	}
	s.parts.run("database", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return server.Stop(context.WithoutCancel(ctx)) // which has a bound of its own
		case <-server.Done():
			return server.Err()
		}
	})
	s.memory.Database, s.memory.MySQLPorts[root.Flavour] = root.Flavour, server.Options().Port
	s.dsn = server.DSN(databaseName)
	return root.String(), createDatabase(ctx, server.DSN(""))
}

// locate finds the server's files. Without a wish, what PATH has comes before a download.
func (s *Stack) locate(ctx context.Context) (mysqlserver.Root, error) {
	flavour := s.opts.Database
	if flavour == "" {
		flavour = s.memory.Database
	}
	if flavour != "" {
		return mysqlserver.Locate(ctx, flavour, "", s.progress)
	}
	for _, f := range []mysqlserver.Flavour{mysqlserver.MySQL, mysqlserver.MariaDB} {
		root, err := mysqlserver.FromPath(ctx, f, "")
		if !errors.Is(err, exec.ErrNotFound) {
			return root, err
		}
	}
	return mysqlserver.Locate(ctx, mysqlserver.MySQL, "", s.progress)
}

func createDatabase(ctx context.Context, dsn string) (err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+databaseName+" CHARACTER SET utf8mb4")
	return err
}

func (s *Stack) migrate(ctx context.Context) (string, error) {
	applied, err := migrate.Up(ctx, s.db)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("at version %d, %d migrations applied", migrate.Latest(), len(applied)), nil
}
