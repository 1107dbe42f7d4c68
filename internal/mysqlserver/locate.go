package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// Locate returns the first server of the flavour that this machine can run: one on PATH, one in a container, or one
// fetched into cacheDir ("" = CacheDir()), with progress on the writer (nil = none). Where nothing works the error
// says which command gets one.
func Locate(ctx context.Context, f Flavour, cacheDir string, progress io.Writer) (Root, error) {
	r, err := FromPath(ctx, f, cacheDir)
	if !errors.Is(err, exec.ErrNotFound) {
		return r, err
	}
	r, err = FromContainer(ctx, f)
	if !errors.Is(err, exec.ErrNotFound) {
		return r, err
	}
	r, err = Fetch(ctx, f, cacheDir, progress)
	if errors.Is(err, ErrNotFetchable) {
		return Root{}, fmt.Errorf("no %s server: none on PATH, no container engine answers, and %w; get one with:\n  %s",
			f, err, getCommand(f))
	}
	return r, err
}

// getCommand is the one command that brings a server where none can be fetched.
func getCommand(f Flavour) string {
	if _, err := exec.LookPath("brew"); err == nil {
		return "brew install " + string(f)
	}
	if _, err := exec.LookPath("dnf"); err == nil {
		return "sudo dnf install " + string(f) + "-server"
	}
	return "docker pull " + map[Flavour]string{MySQL: mysqlImage, MariaDB: mariadbImage}[f] + "   # with a running docker"
}
