package migrate

import (
	"strings"
	"testing"

	"github.com/oncepost/oncepost/locks"
)

// The table is the same for those who run our migrations and for those who have taken its SQL from package locks.
func TestJobRunsIsTheLocksPackages(t *testing.T) {
	_, table, _ := strings.Cut(readMigration(t, "00007_job_runs.sql"), "CREATE TABLE")
	if got := "CREATE TABLE" + strings.TrimSuffix(table, ";\n"); got != locks.JobRunsSQL {
		t.Errorf("the migration has\n%s\nlocks.JobRunsSQL is\n%s", got, locks.JobRunsSQL)
	}
}
