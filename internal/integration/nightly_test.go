package integration

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/examples/nightly"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/locks"
)

// The nightly job of examples/, both ways: many machines at once are one run under a lock, and a Schedule skips what would overlap.
func TestTheNightlyJob(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		_, c := newNamespace(t, temporal, s, "nightly", 24*time.Hour)
		for _, table := range nightly.Tables {
			testdb.Exec(t, s.DB, table)
		}
		testdb.Exec(t, s.DB, "INSERT INTO employees (hours_a_day) VALUES (8), (4), (6)")
		job := nightly.Job{DB: s.DB}
		byLock(t, s, job)
		bySchedule(t, s, job, c)
	})
}

func byLock(t *testing.T, s *testdb.Schema, job nightly.Job) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var machines sync.WaitGroup
	for range 4 {
		l, err := locks.New(s.DB, locks.Config{})
		if err != nil {
			t.Fatal(err)
		}
		machines.Go(func() {
			if err := job.ByLock(t.Context(), l, "2020-01-02", quiet); err != nil {
				t.Error(err)
			}
		})
	}
	machines.Wait()
	got := testdb.Value[string](t, s.DB, "SELECT CONCAT_WS(' ', COUNT(*), SUM(minutes), (SELECT GROUP_CONCAT(state, attempts) FROM job_runs)) FROM leave_entries")
	if got != "3 72 done1" {
		t.Errorf("entries, minutes and records: %s", got)
	}
}

func bySchedule(t *testing.T, s *testdb.Schema, job nightly.Job, c client.Client) {
	t.Helper()
	w := job.Worker(c)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var schedule client.ScheduleHandle
	for range 2 { // it may be there
		var err error
		if schedule, err = nightly.Schedule(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := s.DB.BeginTx(t.Context(), nil) // holds the first run up
	if err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, tx, "SELECT * FROM employees FOR UPDATE")
	trigger := func() {
		if err := schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP}); err != nil {
			t.Fatal(err)
		}
	}
	info := func() client.ScheduleInfo {
		d, err := schedule.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d.Info
	}
	trigger()
	testdb.Eventually(t, "the run goes on", func() bool { return len(info().RunningWorkflows) == 1 })
	trigger()
	testdb.Eventually(t, "an overlapping run is skipped", func() bool { return info().NumActionsSkippedOverlap == 1 })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(nightly.Zone)
	if err != nil {
		t.Fatal(err)
	}
	testdb.Eventually(t, "today's entries", func() bool {
		return testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM leave_entries WHERE day BETWEEN ? AND ?",
			locks.Day(time.Now().Add(-time.Hour).In(zone)), locks.Day(time.Now().In(zone))) == 3
	})
	if i := info(); i.NumActions != 1 {
		t.Errorf("%d runs", i.NumActions)
	}
}
