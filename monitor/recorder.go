package monitor

import (
	"context"
	"database/sql"
	"time"
)

// Recorder writes down what happens in a process that does not watch, such as a job.
type Recorder struct{ book *book }

// NewRecorder returns a Recorder into a database that is migrated.
func NewRecorder(db *sql.DB) *Recorder { return &Recorder{&book{db: db, id: newID()}} }

// lockCounts is for how long a lost lock is shown.
const lockCounts = 15 * time.Minute

// LockLost writes down that a named lock was lost, for the watches to show and to say when it is over, and reports whether the
// caller is to tell people: somebody has of the same lock a short while ago. tells says whether the caller can; else a watch does.
func (r *Recorder) LockLost(ctx context.Context, lock, detail string, tells bool) (tell bool, err error) {
	return r.book.record(ctx, key{CondLockLost, lock}, detail, lockCounts, tells)
}

// Told notes that people were told of what LockLost has written.
func (r *Recorder) Told(ctx context.Context, lock string) error {
	return r.book.told(ctx, key{CondLockLost, lock})
}
