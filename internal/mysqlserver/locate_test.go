package mysqlserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program puts an executable script on a PATH folder.
func program(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// onlyPath makes an empty folder the whole PATH.
func onlyPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	return dir
}

const (
	saysMariaDB = `echo "mysqld  Ver 10.11.18-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"`
	saysMySQL   = `echo "/usr/sbin/mysqld  Ver 8.4.6 for Linux on x86_64 (MySQL Community Server - GPL)"`
)

func TestFromPathTellsFlavoursApart(t *testing.T) {
	dir := onlyPath(t)
	program(t, dir, "mysqld", saysMariaDB)
	program(t, dir, "mariadb-install-db", "exit 0")
	if r, err := FromPath(t.Context(), MySQL, t.TempDir()); !errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("MariaDB's mysqld taken for MySQL: %v, %v", r, err)
	}
	r, err := FromPath(t.Context(), MariaDB, t.TempDir())
	if err != nil || r.Flavour != MariaDB || r.Version != "10.11.18" || r.Source != OnPath {
		t.Fatalf("%+v, %v", r, err)
	}
}

// The order is PATH, container engine, fetch; and where nothing is there the error has the command that gets one.
func TestLocateOrder(t *testing.T) {
	dir := onlyPath(t)
	_, err := Locate(t.Context(), MySQL, t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "docker pull mysql:8.4") {
		t.Fatalf("want the command that gets a server, got: %v", err)
	}
	program(t, dir, "docker", "exit 1") // installed, but no daemon answers
	if r, err := Locate(t.Context(), MySQL, t.TempDir(), nil); err == nil {
		t.Fatalf("an engine that does not answer was used: %v", r)
	}
	program(t, dir, "podman", "exit 0")
	r, err := Locate(t.Context(), MySQL, t.TempDir(), nil)
	if err != nil || r.Source != Container || r.String() != "mysql:8.4 in a container by podman" {
		t.Fatalf("%v, %v", r, err)
	}
	program(t, dir, "mysqld", saysMySQL)
	r, err = Locate(t.Context(), MySQL, t.TempDir(), nil)
	if err != nil || r.Source != OnPath || r.Version != "8.4.6" {
		t.Fatalf("%v, %v", r, err)
	}
}

// A server found on PATH is run with its own folders; this one is the fetched MySQL behind a script.
func TestServerOnPathRuns(t *testing.T) {
	real := fetched(t, MySQL)
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	// --no-defaults must stay the first option.
	script := "exec " + strings.Join(real.exe, " ") + ` "$@" ` + strings.Join(real.treeFlags, " ")
	program(t, dir, "mysqld", script)
	r, err := FromPath(t.Context(), MySQL, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Options{Root: r, Dir: t.TempDir()})
	if n := count(t, open(t, s, ""), "SELECT 1"); n != 1 {
		t.Fatal(n)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A container is published on loopback only, and gets no option that names a place on this machine.
func TestContainerArgs(t *testing.T) {
	r := Root{Flavour: MariaDB, Source: Container, exe: []string{"/usr/bin/docker"}, image: mariadbImage}
	o := Options{Root: r, Dir: "/d", Port: 21000}
	args := containerArgs(r, o.Dir, o.Port, "n", serverFlags(o))
	for _, want := range []string{"127.0.0.1:21000:3306", "/d/data:/var/lib/mysql", "--rm"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s in %q", want, args)
		}
	}
	image := slices.Index(args, mariadbImage)
	for _, flag := range args[image+1:] {
		if strings.Contains(flag, "/") || strings.HasPrefix(flag, "--port") || flag == "--no-defaults" {
			t.Errorf("%s is given to the image", flag)
		}
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv(CacheEnv, "")
	dir, err := CacheDir()
	if err != nil || filepath.Base(dir) != ".cache" {
		t.Fatalf("inside the repository: %q, %v", dir, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "go.mod")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "/x")
	t.Setenv("HOME", "/x")
	if dir, err := CacheDir(); err != nil || !strings.HasPrefix(dir, "/x") || filepath.Base(dir) != "oncepost" {
		t.Fatalf("outside: %q, %v", dir, err)
	}
	t.Setenv(CacheEnv, "rel")
	if dir, err := CacheDir(); err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != "rel" {
		t.Fatalf("from the environment: %q, %v", dir, err)
	}
}
