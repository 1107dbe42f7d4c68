package devstack

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

func TestMemoryIsKept(t *testing.T) {
	dir := t.TempDir()
	m, err := recall(dir)
	if err != nil || m.Database != "" || m.InboxPort != 0 {
		t.Fatalf("of an empty folder: %+v, %v", m, err)
	}
	m.Database, m.InboxPort = mysqlserver.MariaDB, 20001
	m.MySQLPorts[mysqlserver.MariaDB] = 20002
	if err := m.keep(dir); err != nil {
		t.Fatal(err)
	}
	again, err := recall(dir)
	if err != nil || again.Database != m.Database || again.InboxPort != 20001 || again.MySQLPorts[mysqlserver.MariaDB] != 20002 {
		t.Errorf("%+v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, memoryFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recall(dir); err == nil || !strings.Contains(err.Error(), "can be removed") {
		t.Errorf("of a damaged file: %v", err)
	}
}

// One stack per folder; the second one says who has it, and the folder is free after a stop.
func TestLockDir(t *testing.T) {
	o, err := Options{Dir: t.TempDir()}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	first, second := &Stack{opts: o, parts: newParts()}, &Stack{opts: o, parts: newParts()}
	if err := first.lockDir(); err != nil {
		t.Fatal(err)
	}
	err = second.lockDir()
	for _, want := range []string{"already runs on " + o.Dir, "process " + strconv.Itoa(os.Getpid()), "ONCEPOST_DEV_DIR"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the second one gets %v, want %q in it", err, want)
		}
	}
	if err := first.parts.stop(newProgress(io.Discard)); err != nil {
		t.Fatal(err)
	}
	if err := second.lockDir(); err != nil {
		t.Errorf("after the first one's stop: %v", err)
	}
	if err := second.parts.stop(newProgress(io.Discard)); err != nil {
		t.Fatal(err)
	}
}

// The remembered port is taken again while it is free, and given up when it is not.
func TestListenOnRememberedPort(t *testing.T) {
	first, err := listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, port, _ := strings.Cut(first.Addr().String(), ":")
	n, err := strconv.Atoi(port)
	if err != nil || free(t.Context(), n) {
		t.Fatalf("port %s, listened on, counts as free (%v)", port, err)
	}
	other, err := listen(t.Context(), n)
	if err != nil || other.Addr().String() == first.Addr().String() {
		t.Fatalf("%v, %v", other.Addr(), err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := listen(t.Context(), n)
	if err != nil || again.Addr().String() != first.Addr().String() {
		t.Fatalf("%v, %v", again.Addr(), err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
