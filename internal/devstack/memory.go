package devstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// memory is what a folder keeps from one start to the next, so that bookmarks and clients stay right. (Temporal keeps its
// ports itself.)
type memory struct {
	Database   mysqlserver.Flavour         `json:"database,omitempty"`
	MySQLPorts map[mysqlserver.Flavour]int `json:"mysql_ports,omitempty"`
	InboxPort  int                         `json:"inbox_port,omitempty"`
	PagePort   int                         `json:"page_port,omitempty"`
}

const memoryFile = "stack.json"

func recall(dir string) (m memory, err error) {
	m.MySQLPorts = map[mysqlserver.Flavour]int{}
	file := filepath.Join(dir, memoryFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s: %w (it can be removed: it holds only ports)", file, err)
	}
	if m.MySQLPorts == nil {
		m.MySQLPorts = map[mysqlserver.Flavour]int{}
	}
	return m, nil
}

// keep replaces the file in one step, so that a kill leaves the old one or the new one.
func (m memory) keep(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, memoryFile)
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// lockDir keeps a second stack off the folder. The lock ends with this process at the latest, however it ends; the file
// stays.
func (s *Stack) lockDir() error {
	if err := os.MkdirAll(s.opts.Dir, 0o750); err != nil {
		return err
	}
	file := filepath.Join(s.opts.Dir, "lock")
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = s.inUse(file)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.parts.add("", f.Close)
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func (s *Stack) inUse(file string) error {
	pid := "unknown"
	if data, err := os.ReadFile(file); err == nil && len(data) > 0 { // only for the message
		pid = strings.TrimSpace(string(data))
	}
	return fmt.Errorf("a stack already runs on %s (process %s): use it, stop it, or give another folder with --dir (ONCEPOST_DEV_DIR)",
		s.opts.Dir, pid)
}
