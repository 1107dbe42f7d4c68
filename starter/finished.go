package starter

import (
	"sync"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// finished collects the rows that have nothing left but to be deleted or moved to outbox_failed.
type finished struct {
	mu     sync.Mutex
	keys   []outbox.Key
	oldest time.Time // when the first of keys came
	fails  []failing
	locked []lockedKey
	wake   chan struct{}
}

// failing is a row to be moved to outbox_failed.
type failing struct {
	key            outbox.Key
	reason, detail string
	after          time.Time // not before
	unsure         bool      // a move of it was cut short, and may have been committed
}

// lockedKey is a row that somebody's open transaction holds.
type lockedKey struct {
	key   outbox.Key
	after time.Time
}

// lockedPause is how long a locked row is left before its delete is tried again. Nothing is waiting for it.
const lockedPause = time.Second

func newFinished() *finished { return &finished{wake: make(chan struct{}, 1)} }

func (f *finished) add(k outbox.Key) {
	f.mu.Lock()
	if len(f.keys) == 0 {
		f.oldest = time.Now()
	}
	if f.keys == nil {
		f.keys = make([]outbox.Key, 0, outbox.MaxDelete)
	}
	f.keys = append(f.keys, k)
	n := len(f.keys)
	f.mu.Unlock()
	if n == 1 || n == outbox.MaxDelete {
		f.signal()
	}
}

func (f *finished) fail(fs ...failing) {
	f.mu.Lock()
	f.fails = append(f.fails, fs...)
	f.mu.Unlock()
	f.signal()
}

// release returns keys whose delete did not come to an end.
func (f *finished) release(keys []outbox.Key) {
	for _, k := range keys {
		f.add(k)
	}
}

// held takes the keys whose rows somebody's transaction holds. They come up again after a pause.
func (f *finished) held(locked []outbox.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range locked {
		f.locked = append(f.locked, lockedKey{k, time.Now().Add(lockedPause)})
	}
}

// flush lets the deleters take what is there without lingering. It returns how many rows have to wait
// all the same, since somebody else's transaction holds them or they cannot be moved.
func (f *finished) flush() (locked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oldest = time.Time{}
	later, now := 0, time.Now()
	for _, x := range f.fails {
		if now.Before(x.after) {
			later++
		}
	}
	if len(f.keys)+len(f.fails) > later {
		f.signal()
	}
	return len(f.locked) + later
}

func (f *finished) takeFails(now time.Time) (due []failing) {
	var later []failing
	for _, x := range f.fails {
		if now.Before(x.after) {
			later = append(later, x)
		} else {
			due = append(due, x)
		}
	}
	f.fails = later
	return due
}

// lockedIn is how many rows of a shard cannot go: somebody's open transaction holds them, or they could not be moved.
func (f *finished) lockedIn(shard uint8) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.locked {
		if l.key.Shard == shard {
			n++
		}
	}
	now := time.Now()
	for _, x := range f.fails {
		if x.key.Shard == shard && now.Before(x.after) {
			n++
		}
	}
	return n
}

// waiting is how many rows wait for their delete.
func (f *finished) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.keys)
}

func (f *finished) signal() {
	select {
	case f.wake <- struct{}{}:
	default: // a deleter has been told
	}
}

// take returns up to n keys when there are n, or when the oldest has lingered; otherwise how long to wait for that.
func (f *finished) take(n int, linger time.Duration) (keys []outbox.Key, fails []failing, wait time.Duration) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	fails = f.takeFails(now)
	for len(f.locked) > 0 && !now.Before(f.locked[0].after) {
		if len(f.keys) == 0 {
			f.oldest = now
		}
		f.keys = append(f.keys, f.locked[0].key)
		f.locked = f.locked[1:]
	}
	if len(f.keys) == 0 {
		return nil, fails, lockedPause
	}
	if age := now.Sub(f.oldest); len(f.keys) < n && age < linger {
		return nil, fails, linger - age
	}
	n = min(n, len(f.keys))
	keys = f.keys[:n:n]
	if f.keys = f.keys[n:]; len(f.keys) == 0 {
		f.keys = nil
	}
	f.oldest = now
	if len(f.keys) > 0 {
		f.signal()
	}
	return keys, fails, 0
}
