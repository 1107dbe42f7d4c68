package mysqlserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// onFirstLine calls do when something is written.
type onFirstLine struct {
	once sync.Once
	do   func()
}

func (w *onFirstLine) Write(p []byte) (int, error) {
	w.once.Do(w.do)
	return len(p), nil
}

// A fetch that is broken off leaves nothing that a later one would take for a server.
func TestFetchBrokenOff(t *testing.T) {
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Fetch(ctx, MariaDB, cache, &onFirstLine{do: cancel})
	if err == nil {
		t.Fatalf("fetched %s", r)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		if !strings.HasSuffix(file, ".lock") {
			t.Errorf("%s is left", file)
		}
	}
}

// A tree that is there is used without a look at the network or at what this system is.
func TestFetchedIsUsedOffline(t *testing.T) {
	r := fetched(t, MariaDB)
	t.Setenv("PATH", t.TempDir())
	again, err := Fetch(t.Context(), MariaDB, "", nil)
	if err != nil || again.String() != r.String() {
		t.Fatalf("%v, %v", again, err)
	}
	if _, err := Fetch(t.Context(), MariaDB, t.TempDir(), os.Stderr); !errors.Is(err, ErrNotFetchable) {
		t.Fatalf("without apt: %v", err)
	}
}
