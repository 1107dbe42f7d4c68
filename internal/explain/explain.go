package explain

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/schemas"
)

// Sources are where the parts of a Report come from.
type Sources struct {
	DB        *sql.DB // a pool of internal/mysqldb
	Client    client.Client
	Namespace string
	UI        string // the web UI's address, for links; may be ""
}

// NotFoundError says that nothing knows of a message.
type NotFoundError struct{ MessageID, Namespace string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("nothing is known of message %s: it is neither in outbox_messages, outbox_failed and sends, nor a workflow of namespace %s "+
		"(letter case matters; a rolled-back transaction leaves nothing; closed workflows go after the namespace's retention)", e.MessageID, e.Namespace)
}

// Explain reads all that is known of a message.
func (s Sources) Explain(ctx context.Context, id string) (r Report, err error) {
	r.MessageID = id
	if r.Row, err = readRow(ctx, s.DB, id); err != nil {
		return r, err
	}
	if r.Failed, err = readFailed(ctx, s.DB, id); err != nil {
		return r, err
	}
	if r.Ledger, err = readLedger(ctx, s.DB, id); err != nil {
		return r, err
	}
	if r.Workflow, err = readWorkflow(ctx, s.Client, s, id); err != nil {
		return r, err
	}
	if r.Row == nil && r.Workflow == nil && len(r.Failed)+len(r.Ledger) == 0 {
		return r, &NotFoundError{id, s.Namespace}
	}
	if r.Row != nil || r.Workflow != nil && r.Workflow.ClosedAt == nil {
		if r.Stops, err = readStops(ctx, s.DB); err != nil {
			return r, err
		}
	}
	r.Summary = r.summarise()
	return r, nil
}

// summarise says in a sentence how the message stands.
func (r *Report) summarise() string {
	w := r.Workflow
	switch {
	case w == nil && r.Row != nil:
		return "The row waits in outbox_messages: no relay has started its workflow yet."
	case w == nil && len(r.Failed) > 0:
		return "The message could not start, and is in outbox_failed: " + r.Failed[len(r.Failed)-1].Reason + "."
	case w == nil:
		return "The workflow has closed and its history has gone with the namespace's retention; the ledger tells what was sent."
	case w.Failing > 0 && w.ClosedAt == nil:
		return fmt.Sprintf("The workers fail at it (%d times in a row): either none knows the event type %s, or its code has changed. Their log says which.",
			w.Failing, w.EventType)
	case w.State == schemas.StateParked && w.ClosedAt == nil:
		return "Parked: a person must say what has happened. See `oncepost resolve --help`."
	case w.ClosedAt == nil && w.DueAt != nil && time.Now().After(w.DueAt.Add(time.Minute)) && len(w.Steps) == 0:
		return "The message is due, and no worker has taken up its workflow."
	case w.ClosedAt == nil && w.DueAt != nil && len(w.Steps) == 0:
		return "The workflow has started, and waits until the message is due."
	case w.ClosedAt == nil:
		return r.running()
	case w.Status == "Completed":
		return fmt.Sprintf("Completed: %d of %d sends in the ledger are done.", r.done(), len(r.Ledger))
	}
	return "The workflow has closed: " + w.Status + "."
}

// running says what a running workflow is at.
func (r *Report) running() string {
	if len(r.Stops) > 0 && slices.ContainsFunc(r.Workflow.Steps, Step.waits) {
		return "Not sent yet: sending has stopped (" + r.Stops[0].Class + "), and all mails wait. See `oncepost sending status`."
	}
	for _, s := range r.Workflow.Steps {
		if s.NextAt != nil {
			return fmt.Sprintf("Not sent yet: attempt %d failed (%s), and the next one follows.", s.Attempt, s.Class)
		}
	}
	return "The workflow is running."
}

func (r *Report) done() (n int) {
	for _, e := range r.Ledger {
		if e.State == "done" {
			n++
		}
	}
	return n
}
