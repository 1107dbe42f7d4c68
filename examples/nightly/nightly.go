// Package nightly is one nightly job, run once a day in two ways: under a named lock with a record, for cron, and by a Temporal
// Schedule. Both call the same work, whose result is guarded by a UNIQUE key: that is the layer which makes it right, and the others
// only spare the work. docs/locks.md says when to use which.
package nightly

import (
	"context"
	"database/sql"
	"fmt"
)

// Tables are what the job works on.
var Tables = []string{
	`CREATE TABLE IF NOT EXISTS employees (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, hours_a_day INT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS leave_entries (
  employee_id INT NOT NULL,
  day DATE NOT NULL,
  minutes INT NOT NULL,
  PRIMARY KEY (employee_id, day)
)`,
}

// Job accrues the annual leave of one day.
type Job struct{ DB *sql.DB }

// Accrue adds the day's leave of each employee who does not have it yet, and returns how many it added. It may be repeated, and stopped
// in the middle.
func (j Job) Accrue(ctx context.Context, day string) (added int64, err error) {
	r, err := j.DB.ExecContext(ctx, `INSERT INTO leave_entries (employee_id, day, minutes)
 SELECT id, ?, hours_a_day * 4 FROM employees ON DUPLICATE KEY UPDATE minutes = leave_entries.minutes`, day)
	if err == nil {
		added, err = r.RowsAffected() // one that was there counts as none
	}
	if err != nil {
		return 0, fmt.Errorf("accrue the leave of %s: %w", day, err)
	}
	return added, nil
}
