package sesstandin

import (
	"context"
	"slices"
	"sync"
)

// store keeps the accepted mails, oldest first, within a number and a size.
type store struct {
	maxMails int
	maxBytes int64

	mu      sync.Mutex
	mails   []Mail
	bytes   int64
	changed chan struct{} // closed and replaced at every change
}

func newStore(maxMails int, maxBytes int64) *store {
	return &store{maxMails: maxMails, maxBytes: maxBytes, changed: make(chan struct{})}
}

// add keeps a mail, and drops the oldest ones that no longer fit; it returns how much it dropped.
// The newest always stays.
func (s *store) add(m Mail) (droppedMails int, droppedBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
	s.bytes += m.size()
	drop := 0
	for len(s.mails)-drop > 1 && (len(s.mails)-drop > s.maxMails || s.bytes > s.maxBytes) {
		size := s.mails[drop].size()
		s.bytes -= size
		droppedBytes += size
		s.mails[drop] = Mail{} // lets go of the message although the array lives on
		drop++
	}
	s.mails = s.mails[drop:]
	s.signal()
	return drop, droppedBytes
}

func (s *store) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails, s.bytes = nil, 0
	s.signal()
}

// signal needs s.mu.
func (s *store) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// all returns a copy of the list, and a channel that is closed at its next change.
func (s *store) all() ([]Mail, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails), s.changed
}

func (s *store) find(id string) (Mail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.mails, func(m Mail) bool { return m.ID == id })
	if i < 0 {
		return Mail{}, false
	}
	return s.mails[i], true
}

// wait returns the mails as soon as enough holds of them, or with ctx's error as they are then.
func (s *store) wait(ctx context.Context, enough func([]Mail) bool) ([]Mail, error) {
	for {
		mails, changed := s.all()
		if enough(mails) {
			return mails, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return mails, ctx.Err()
		}
	}
}
