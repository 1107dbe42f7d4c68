package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 20 * time.Millisecond

// lockFile takes an exclusive lock on file, waiting until ctx ends. The lock belongs to the open file: closing it, or
// the end of every process that has inherited it, frees the lock.
func lockFile(ctx context.Context, file string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s, held by another process: %w", file, ctx.Err()), f.Close())
		case <-time.After(lockPoll):
		}
	}
}
