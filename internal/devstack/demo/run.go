package demo

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// patience is how long the demo waits for what should take well under a second.
const patience = 30 * time.Second

// Deps are the stack that the demo runs on. All are required.
type Deps struct {
	DB       *sql.DB
	Temporal client.Client
	Inbox    *sesstandin.Server
}

// Result is how a run came out.
type Result struct {
	Rows, Right int
	// Example is the ID of a message whose workflow and mails are worth a look.
	Example string
}

// OK says that every row came out as it should.
func (r Result) OK() bool { return r.Rows > 0 && r.Right == r.Rows }

// Run does business, waits for what comes of it, and prints both. An error means that it could not; a row that came out
// wrong is in the Result.
func Run(ctx context.Context, deps Deps, out io.Writer) (Result, error) {
	if err := createTables(ctx, deps.DB); err != nil {
		return Result{}, err
	}
	s := newStory(deps.DB, out)
	fmt.Fprintln(out, "\nThe business at work:")
	if err := s.tell(ctx); err != nil {
		return Result{}, err
	}
	ahead, err := clockAhead(ctx, deps.DB)
	if err != nil {
		return Result{}, err
	}
	fmt.Fprintln(out, "\nWhat became of each message (it takes until the delayed one has come):")
	seen, err := observer{db: deps.DB, temporal: deps.Temporal, mails: deps.Inbox.Mails}.await(ctx, s.all)
	if err != nil {
		return Result{}, err
	}
	return report(out, s.all, seen, ahead), nil
}

func report(out io.Writer, all []expectation, seen []sight, ahead time.Duration) Result {
	r := Result{Rows: len(all)}
	rows := [][]string{{"", "MESSAGE", "TYPE", "EXPECTED", "SEEN", "VERDICT"}}
	waiting, failed := 0, 0
	for i, e := range all {
		verdict := "ok"
		if faults := e.faults(seen[i], ahead); len(faults) > 0 {
			verdict = "WRONG: " + strings.Join(faults, "; ")
		} else {
			r.Right++
		}
		if len(e.to) > 1 && r.Example == "" {
			r.Example = e.id
		}
		waiting, failed = waiting+seen[i].waiting, failed+seen[i].failed
		rows = append(rows, []string{strconv.Itoa(i + 1), e.id, e.eventType, e.text, e.seen(seen[i], ahead), verdict})
	}
	fmt.Fprintln(out)
	printTable(out, rows)
	fmt.Fprintf(out, "\n  Of these, %d are left in outbox_messages and %d are in outbox_failed.\n", waiting, failed)
	fmt.Fprintf(out, "  %d of %d came out as they should.\n", r.Right, r.Rows)
	return r
}
