package mysqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	readyPoll      = 10 * time.Millisecond
	readyTimeout   = 90 * time.Second // after a kill a server may have much to recover
	containerReady = 10 * time.Minute // the engine may have to pull the image
)

// awaitReady returns when the server answers a query, or when it is gone, or after a bound.
func (s *Server) awaitReady(ctx context.Context) error {
	bound := readyTimeout
	if s.opts.Root.Source == Container {
		bound = containerReady
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	config := s.config("")
	config.Logger = &mysql.NopLogger{} // a refused connection is what we wait through, not news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for {
		err := s.answers(ctx, db)
		if err == nil || errors.Is(err, errNotOurs) {
			return err
		}
		select {
		case <-s.proc.done:
			return s.Err()
		case <-ctx.Done():
			return fmt.Errorf("server does not answer on %s: %w (last: %w)\n%s", s.Addr(), ctx.Err(), err, s.tail())
		case <-time.After(readyPoll):
		}
	}
}

var errNotOurs = errors.New("another server answers on this port")

// answers asks for something that only this server says: on a taken port another one would answer while ours fails.
func (s *Server) answers(ctx context.Context, db *sql.DB) error {
	var dir string
	if err := db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&dir); err != nil {
		return err
	}
	if s.opts.Root.Source == Container {
		return nil
	}
	want, err := filepath.EvalSymlinks(filepath.Join(s.opts.Dir, "data"))
	if err != nil {
		return err
	}
	got, err := filepath.EvalSymlinks(dir)
	if err != nil || got != want {
		return fmt.Errorf("%s, data in %s: %w", s.Addr(), dir, errNotOurs)
	}
	return nil
}

func (s *Server) tail() string { return logTail(s.logFile, s.logFrom) }
