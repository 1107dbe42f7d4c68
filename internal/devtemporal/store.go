package devtemporal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

const databaseFile = "temporal.db"

// openStore makes the database where it does not exist, with the namespace in it: a server that finds its namespaces
// at its start can use them at once.
func openStore(o Options) (*config.SQL, error) {
	store := memoryStore(rand.Text())
	if o.Dir != "" {
		file := filepath.Join(o.Dir, databaseFile)
		if err := makeFile(file); err != nil {
			return nil, err
		}
		store = fileStore(file)
	}
	namespace, err := sqlite.NewNamespaceConfig(clusterName, o.Namespace, false, o.SearchAttributes)
	if err != nil {
		return nil, err
	}
	namespace.Detail.Config.Retention = durationpb.New(o.Retention)
	if err := sqlite.CreateNamespaces(store, namespace); err != nil {
		return nil, err
	}
	return store, nil
}

// makeFile makes the file's tables under another name, so that a start that is killed meanwhile leaves no half of them.
func makeFile(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh := file + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	store := fileStore(fresh)
	// Not yet in WAL mode: everything is in the one file that gets the name.
	delete(store.ConnectAttributes, "journal_mode")
	if err := sqlite.SetupSchema(store); err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	return os.Rename(fresh, file)
}

// lockDir keeps a second server off the same database, where each would take the other's history shards. The lock
// ends with this process at the latest. It is nil for a server in memory.
func lockDir(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another Temporal server runs on %s", dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
