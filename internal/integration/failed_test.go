package integration

import (
	"errors"
	"strings"
	"testing"
	"time"

	broken "github.com/oncepost/oncepost/internal/failed"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/workflows"
)

func (w *world) failures() (*broken.Rows, *broken.Workflows) {
	w.t.Helper()
	db, err := mysqldb.Open(mysqldb.Config{DSN: w.s.DSN})
	if err != nil {
		w.t.Fatal(err)
	}
	testdb.CloseAtEnd(w.t, db)
	return &broken.Rows{DB: db}, &broken.Workflows{Client: w.c, Namespace: w.namespace}
}

// listed waits until exactly these have failed, and sees to it that the list names nobody.
func (w *world) listed(want ...string) {
	w.t.Helper()
	rows, wfs := w.failures()
	var got string
	testdb.Eventually(w.t, "the list of "+strings.Join(want, ", "), func() bool {
		all, _, err := broken.List(w.t.Context(), rows, wfs, broken.Filter{})
		if err != nil {
			w.t.Fatal(err)
		}
		var lines []string
		for _, i := range all {
			lines = append(lines, i.Kind+" "+i.MessageID+" "+i.Reason+" "+i.Class)
		}
		got = strings.Join(lines, ", ")
		return got == strings.Join(want, ", ")
	})
	if strings.Contains(got, "@") {
		w.t.Error(got)
	}
}

// One of two mails was sent before the workflow failed: the retry sends the other one, and no more.
func TestRetryOfAFailedWorkflowSendsOnlyTheRest(t *testing.T) {
	eachWorld(t, func(w *world) {
		if _, err := w.standin.Inject(sesstandin.Fault{Match: "b@example.com", Error: &sesstandin.APIError{Status: 503, Code: "ServiceUnavailable", Message: "away"}}); err != nil {
			w.t.Fatal(err)
		}
		m := paymentFailed("two")
		m.Payload.(map[string]any)["admins"] = []map[string]string{{"email": "a@example.com", "name": "A"}, {"email": "b@example.com", "name": "B"}} //nolint:forcetypeassert // as above
		enqueue(w.t, w.s, m)
		testdb.Eventually(w.t, "one mail is sent, and the other has failed once", func() bool {
			faults := w.standin.Faults()
			done := testdb.Value[int](w.t, w.s.DB, "SELECT COUNT(*) FROM sends WHERE state = 'done'")
			free := testdb.Value[int](w.t, w.s.DB, "SELECT COUNT(*) FROM sends WHERE state = 'free'")
			return w.mails() == 1 && faults[0].Fired > 0 && done == 1 && free == 1
		})
		if err := w.c.TerminateWorkflow(w.t.Context(), "two", "", "stopped for someone@example.com"); err != nil {
			w.t.Fatal(err)
		}
		w.listed("workflow two Terminated ")
		w.standin.ClearFaults()
		_, wfs := w.failures()
		found, err := wfs.Show(w.t.Context(), "two")
		if err != nil || found == nil || found.Error != "stopped for (address)" {
			w.t.Fatalf("%+v, %v", found, err)
		}
		if _, err := wfs.Retry(w.t.Context(), found, "test", false); err != nil {
			w.t.Fatal(err)
		}
		if run, err := wfs.Retry(w.t.Context(), found, "test", false); !errors.Is(err, broken.ErrRunsAgain) {
			w.t.Errorf("a second person's retry made run %s: %v", run, err)
		}
		if r := w.result("two"); len(r.Sends) != 2 || w.mails() != 2 {
			w.t.Errorf("%+v, %d mails", r, w.mails())
		}
		var b int
		for _, mail := range w.standin.Mails() {
			if mail.To[0] == "b@example.com" {
				b++
			}
		}
		if b != 1 {
			w.t.Errorf("%d mails to the second", b)
		}
		w.listed() // the run that failed is still in the history, and is not the last one
	})
}

// What failed for good is told from what a retry may cure.
func TestFailedListAndRetryInVain(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.fault("reject", 1)
		enqueue(w.t, w.s, welcome("rejected"))
		w.listed("workflow rejected Failed Rejected")
		enqueue(w.t, w.s, outbox.Message{ID: "invalid", EventType: "welcome", Payload: map[string]any{"email": "a@example.com"}})
		w.listed("workflow invalid Failed InvalidPayload", "workflow rejected Failed Rejected")
		testdb.Eventually(w.t, "the rows are gone", func() bool { return pending(w.t, w.s) == 0 })
		enqueue(w.t, w.s, outbox.Message{ID: "invalid", EventType: "welcome", Payload: map[string]any{"other": 1}})
		w.listed("row invalid id_reused ", "workflow invalid Failed InvalidPayload", "workflow rejected Failed Rejected")

		_, wfs := w.failures()
		rejected, err := wfs.Show(w.t.Context(), "rejected")
		if err != nil || rejected == nil || rejected.Error == "" {
			w.t.Fatalf("%+v, %v", rejected, err)
		}
		var never *broken.NeverError
		if _, err := wfs.Retry(w.t.Context(), rejected, "test", false); !errors.As(err, &never) {
			w.t.Errorf("%v", err)
		}
		if _, err := wfs.Retry(w.t.Context(), rejected, "test", true); err != nil {
			w.t.Error(err)
		}
		var r workflows.Result
		if err := w.c.GetWorkflow(w.t.Context(), "rejected", "").Get(w.t.Context(), &r); err == nil || w.mails() != 0 {
			w.t.Errorf("the ledger let it through: %v, %d mails", err, w.mails())
		}
	})
}

// A workflow that no worker has begun has no task to go back to; another program's workflow is not ours to list.
func TestFailedBeforeItBegan(t *testing.T) {
	eachUnmanned(t, 24*time.Hour, func(w *world) {
		enqueue(w.t, w.s, welcome("early"))
		w.awaitStarted("early")
		if err := w.c.TerminateWorkflow(w.t.Context(), "early", "", "x"); err != nil {
			w.t.Fatal(err)
		}
		w.listed("workflow early Terminated ")
		_, wfs := w.failures()
		early, err := wfs.Show(w.t.Context(), "early")
		if err != nil || early == nil {
			w.t.Fatal(err)
		}
		if _, err := wfs.Retry(w.t.Context(), early, "test", false); err == nil || !strings.Contains(err.Error(), "no worker had begun it") {
			w.t.Error(err)
		}
		if none, err := wfs.Show(w.t.Context(), "absent"); none != nil || err != nil {
			w.t.Errorf("%v, %v", none, err)
		}
	})
}
