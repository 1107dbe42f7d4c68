package mysqlserver

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CacheEnv is the environment variable that names the cache folder.
const CacheEnv = "ONCEPOST_CACHE"

const modulePath = "github.com/oncepost/oncepost"

// CacheDir is where fetched servers and template data folders are kept: $ONCEPOST_CACHE, or .cache at the root of the
// repository when the working directory is inside it, or else the folder oncepost in the user's cache.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	root, err := moduleRoot(wd)
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if root != "" {
		return filepath.Join(root, ".cache"), nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder (set %s): %w", CacheEnv, err)
	}
	return filepath.Join(user, "oncepost"), nil
}

// moduleRoot is the nearest folder at or above dir whose go.mod is oncepost's own, or "". Modules nested in the
// repository (bench, chaos) are passed over, so that they share its cache.
func moduleRoot(dir string) (string, error) {
	for {
		own, err := declaresModule(filepath.Join(dir, "go.mod"))
		if err != nil || own {
			return dir, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

func declaresModule(file string) (bool, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil // not a module, or a folder above the repository that is not ours to read
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name) == modulePath, nil
		}
	}
	return false, lines.Err()
}
