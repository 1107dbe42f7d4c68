package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/workflows"
)

// What is old goes by a Schedule that the worker has made and a person can see and trigger; what is not stays, and producers wait
// for nothing meanwhile.
func TestHousekeeping(t *testing.T) {
	t.Parallel() // it waits, most of the time
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		w.hire(w.mailer)
		w.hire(w.mailer)  // the Schedule of another worker stays as it is
		const many = 1100 // several batches
		for _, age := range []int{100, 80} {
			testdb.Exec(w.t, w.s.DB, fmt.Sprintf(`INSERT INTO outbox_failed (message_id, event_type, payload, priority, reason, detail, failed_at)
 SELECT CONCAT('f%d:', a.shard, ':', b.shard, ':', c.shard), 'welcome', '{}', 3, 'never_starts', '', NOW(6) - INTERVAL %d DAY
 FROM outbox_messages a, outbox_messages b, outbox_messages c WHERE a.message_id >= '~' AND b.message_id >= '~' AND c.message_id >= '~' LIMIT %d`, age, age, many))
			testdb.Exec(w.t, w.s.DB, fmt.Sprintf("INSERT INTO job_runs (job, period, state, token, started_at) VALUES ('j', '%d', 'done', 'x', NOW(6) - INTERVAL %d DAY)", age, age))
		}
		testdb.Exec(w.t, w.s.DB, "INSERT INTO processes (process_id, role, state, seen_at) VALUES ('old', 'relay', '{}', NOW(6) - INTERVAL 2 DAY), ('new', 'relay', '{}', NOW(6))")
		schedule := w.c.ScheduleClient().GetHandle(w.t.Context(), workflows.HousekeepingSchedule)
		testdb.Eventually(w.t, "the Schedule is there", func() bool {
			_, err := schedule.Describe(w.t.Context())
			return err == nil
		})
		if err := schedule.Trigger(w.t.Context(), client.ScheduleTriggerOptions{}); err != nil {
			w.t.Fatal(err)
		}
		conn := testdb.Conn(w.t, w.s.DB, "SET SESSION innodb_lock_wait_timeout = 1")
		run := func() (id string) {
			d, err := schedule.Describe(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			if r := d.Info.RecentActions; len(r) > 0 {
				id = r[0].StartWorkflowResult.WorkflowID
			}
			return id
		}
		testdb.Eventually(w.t, "it runs", func() bool {
			if _, err := outbox.Enqueue(w.t.Context(), conn, welcome("")); err != nil {
				w.t.Fatal(err)
			}
			return run() != ""
		})
		var swept workflows.Swept
		if err := w.c.GetWorkflow(w.t.Context(), run(), "").Get(w.t.Context(), &swept); err != nil {
			w.t.Fatal(err)
		}
		if want := (workflows.Swept{Failed: many, JobRuns: 1, Processes: 1}); swept != want {
			w.t.Errorf("%+v, want %+v", swept, want)
		}
		if n := testdb.Value[int](w.t, w.s.DB, "SELECT COUNT(*) FROM outbox_failed"); n != many {
			w.t.Errorf("%d failed messages are left", n)
		}
		if left := testdb.Column[string](w.t, w.s.DB, "SELECT period FROM job_runs"); !slices.Equal(left, []string{"80"}) {
			w.t.Errorf("left %q", left)
		}
	})
}
