package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Options say which server to start and where.
type Options struct {
	Root Root
	// Dir belongs to this server: data, server.log and tmp are made in it. A second start on the same Dir finds the
	// data of the first. Required.
	Dir string
	// Port on 127.0.0.1; 0 = a free one.
	Port int
	// Flags are given to the server after the default ones and so override them.
	Flags []string
	// Durable makes each commit wait for the disk, with the binlog as the flavour has it by default (on for MySQL).
	Durable bool
	// Logger; nil = nothing is logged.
	Logger *slog.Logger
}

// dirWait bounds the wait for another server on the same Dir: one that has just been killed needs a moment to be gone.
const dirWait = 10 * time.Second

// Server is a running server.
type Server struct {
	opts    Options
	proc    *process
	name    string // a container's name
	logFile string
	logFrom int64 // where this start's log begins
	ending  atomic.Bool
}

// Start starts a server on o.Dir, which is filled first when it is empty, and returns when the server answers a query.
// ctx bounds the start only. The server ends by Stop or Kill, or with this process.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Root.exe == nil {
		return nil, errors.New("mysqlserver: Options.Root is required: see Locate")
	}
	if o.Dir == "" {
		return nil, errors.New("mysqlserver: Options.Dir is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	s, err := startProvisioned(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", o.Root.Flavour, o.Dir, err)
	}
	return s, nil
}

func startProvisioned(ctx context.Context, o Options) (*Server, error) {
	lockCtx, cancel := context.WithTimeout(ctx, dirWait)
	defer cancel()
	lock, err := lockFile(lockCtx, filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	// The server inherits the lock: it is free again when the server is gone, whatever happens to us.
	defer lock.Close()
	if err := provision(ctx, o); err != nil {
		return nil, err
	}
	if o.Port != 0 {
		return launch(ctx, o, lock)
	}
	const tries = 3 // between our look and the server's bind another process may take the port
	for try := 1; ; try++ {
		if o.Port, err = freePort(ctx); err != nil {
			return nil, err
		}
		s, err := launch(ctx, o, lock)
		if err == nil || try == tries || !portTaken(err) {
			return s, err
		}
		o.Logger.Info("port taken meanwhile, trying another one", "port", o.Port, "error", err)
	}
}

// portTaken reads both servers' and the engines' words for a port that somebody else has.
func portTaken(err error) bool {
	return errors.Is(err, errNotOurs) || strings.Contains(err.Error(), "already in use") ||
		strings.Contains(err.Error(), "already allocated")
}

func launch(ctx context.Context, o Options, lock *os.File) (*Server, error) {
	s := &Server{opts: o, logFile: filepath.Join(o.Dir, "server.log")}
	// Left by a server that was killed; the number in one of them may be another process's by now.
	for _, stale := range []string{"s.sock", "s.sock.lock", "mysqld.pid"} {
		if err := os.RemoveAll(filepath.Join(o.Dir, "data", stale)); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(s.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	s.logFrom = info.Size()
	argv := s.argv()
	cmd := exec.Command(argv[0], argv[1:]...) // not bound to ctx, which is the start's only
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, o.Dir
	cmd.ExtraFiles = []*os.File{lock}
	if s.proc, err = startProcess(cmd); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	o.Logger.Info("database server started", "flavour", o.Root.Flavour, "version", o.Root.Version, "addr", s.Addr(), "pid", s.PID())
	return s, nil
}

func (s *Server) argv() []string {
	flags := append(serverFlags(s.opts), s.opts.Flags...)
	if s.opts.Root.Source == Container {
		s.name = containerName(s.opts.Port)
		return containerArgs(s.opts.Root, s.opts.Dir, s.opts.Port, s.name, flags)
	}
	return append(append([]string{}, s.opts.Root.exe...), flags...)
}

// Options returns what the server was started with and the port it got: Start(ctx, s.Options()) after a Stop or Kill
// brings the same server back on the same address.
func (s *Server) Options() Options { return s.opts }

// Flavour is the server's flavour.
func (s *Server) Flavour() Flavour { return s.opts.Root.Flavour }

// PID is the server's process ID; for a container that of the engine's client.
func (s *Server) PID() int { return s.proc.cmd.Process.Pid }

// Addr is the server's TCP address, host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.opts.Port)) }

// LogFile is the server's own log.
func (s *Server) LogFile() string { return s.logFile }

// DSN is the data source name for github.com/go-sql-driver/mysql: root, without a password. database may be empty.
func (s *Server) DSN(database string) string { return s.config(database).FormatDSN() }

func (s *Server) config(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", s.Addr(), database
	return c
}
