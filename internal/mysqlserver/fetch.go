package mysqlserver

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// scripts do the fetching: apt and dpkg are spoken to most plainly in bash.
//
//go:embed scripts/*.sh
var scripts embed.FS

// ErrNotFetchable is returned by Fetch on a system that is neither Debian nor Ubuntu.
var ErrNotFetchable = errors.New("servers can be fetched on Debian and Ubuntu only")

// Fetch downloads the server and every library that it needs from the distribution's archive and unpacks them below
// cacheDir ("" = CacheDir()); where they are there already it returns at once. It needs no root and installs nothing;
// two processes may fetch at the same time. Progress lines go to progress, which may be nil.
func Fetch(ctx context.Context, f Flavour, cacheDir string, progress io.Writer) (Root, error) {
	cacheDir, err := cacheOr(cacheDir)
	if err != nil {
		return Root{}, fmt.Errorf("fetch %s: %w", f, err)
	}
	dir := fetchedDir(f, cacheDir)
	if _, err := os.Stat(filepath.Join(dir, "ok")); errors.Is(err, fs.ErrNotExist) {
		if !canFetch() {
			return Root{}, fmt.Errorf("fetch %s: %w", f, ErrNotFetchable)
		}
		if err := runFetchScript(ctx, f, dir, progress); err != nil {
			return Root{}, fmt.Errorf("fetch %s into %s: %w", f, dir, err)
		}
	} else if err != nil {
		return Root{}, fmt.Errorf("fetch %s: %w", f, err)
	}
	return fetchedRoot(ctx, f, dir)
}

func cacheOr(dir string) (string, error) {
	if dir == "" {
		return CacheDir()
	}
	return filepath.Abs(dir)
}

// fetchedDir carries the architecture: a cache folder may be shared between machines.
func fetchedDir(f Flavour, cacheDir string) string {
	return filepath.Join(cacheDir, string(f)+"-"+runtime.GOARCH)
}

// canFetch reports whether this system has the programs that the scripts use; they find out which system it is.
func canFetch() bool {
	for _, program := range []string{"bash", "apt-get", "dpkg-deb", "flock"} {
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	return runtime.GOOS == "linux"
}

func runFetchScript(ctx context.Context, f Flavour, dir string, progress io.Writer) error {
	at, err := os.MkdirTemp("", "oncepost-fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(at) //nolint:errcheck // copies of the embedded scripts, in the temporary folder
	if err := os.CopyFS(at, scripts); err != nil {
		return err
	}
	last := &tailWriter{limit: 2000}
	var out io.Writer = last
	if progress != nil {
		out = io.MultiWriter(progress, last)
	}
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(at, "scripts", "fetch-"+string(f)+".sh"), dir)
	cmd.Stdout, cmd.Stderr = out, out
	// apt runs below bash: the whole group is ended, and bash then removes what is half done.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, last)
	}
	return nil
}

// fetchedRoot describes an unpacked tree. The program is run through the tree's own loader with the tree's own
// libraries, so that this machine's libc does not matter.
func fetchedRoot(ctx context.Context, f Flavour, dir string) (Root, error) {
	tree := filepath.Join(dir, "root")
	loader, libs, err := findLoader(tree)
	if err != nil {
		return Root{}, err
	}
	program, share := "mysqld", filepath.Join(tree, "usr", "share", "mysql")
	if f == MariaDB {
		program = "mariadbd"
	}
	r := Root{Flavour: f, Source: Fetched, shareDir: share, templateAt: filepath.Join(dir, "template")}
	r.exe = []string{loader, "--library-path", libs, filepath.Join(tree, "usr", "sbin", program)}
	r.treeFlags = []string{
		"--basedir=" + filepath.Join(tree, "usr"),
		"--lc-messages-dir=" + share,
		"--character-sets-dir=" + filepath.Join(share, "charsets"),
		"--plugin-dir=" + filepath.Join(tree, "usr", "lib", "mysql", "plugin"),
	}
	_, r.Version, err = askVersion(ctx, r.exe)
	return r, err
}

// findLoader returns the tree's dynamic loader and library path. Releases differ in whether /lib is /usr/lib.
func findLoader(tree string) (loader, libs string, err error) {
	for _, lib := range []string{"usr/lib", "lib"} {
		found, err := filepath.Glob(filepath.Join(tree, lib, "*-linux-gnu*", "ld-linux-*.so.*"))
		if err != nil {
			return "", "", err
		}
		if len(found) > 0 {
			multiarch := filepath.Base(filepath.Dir(found[0]))
			return found[0], filepath.Join(tree, "usr/lib", multiarch) + ":" + filepath.Join(tree, "lib", multiarch), nil
		}
	}
	return "", "", fmt.Errorf("no dynamic loader in %s: remove that folder and fetch again", tree)
}
