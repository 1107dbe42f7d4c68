package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// observer looks at what became of messages.
type observer struct {
	db       *sql.DB
	temporal client.Client
	mails    func() []sesstandin.Mail
}

// sight is what was seen of one message.
type sight struct {
	workflow string // its status in Temporal; "" is none
	mails    []sesstandin.Mail
	waiting  int // rows in outbox_messages
	failed   int // rows in outbox_failed
}

const completed = "Completed"

// settled says that nothing more is to come of what was expected.
func (s sight) settled(e expectation) bool {
	if s.waiting > 0 {
		return false
	}
	if e.nothing {
		return true
	}
	return s.failed > 0 || s.workflow != "" && s.workflow != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING.String()
}

func (o observer) look(ctx context.Context, id string) (s sight, err error) {
	if s.workflow, err = o.workflow(ctx, id); err != nil {
		return s, err
	}
	for _, m := range o.mails() {
		if m.MessageID == id {
			s.mails = append(s.mails, m)
		}
	}
	// The condition on the shard lets the server find the row instead of reading the table.
	err = o.db.QueryRowContext(ctx, `SELECT
		(SELECT COUNT(*) FROM outbox_messages WHERE shard IN (CRC32(?) MOD 16, CRC32(?) MOD 16 + 16) AND message_id = ?),
		(SELECT COUNT(*) FROM outbox_failed WHERE message_id = ?)`, id, id, id, id).Scan(&s.waiting, &s.failed)
	if err != nil {
		return s, fmt.Errorf("look for the rows of %s: %w", id, err)
	}
	return s, nil
}

func (o observer) workflow(ctx context.Context, id string) (string, error) {
	d, err := o.temporal.DescribeWorkflowExecution(ctx, id, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the workflow %s: %w", id, err)
	}
	return d.GetWorkflowExecutionInfo().GetStatus().String(), nil
}

// await looks until nothing more is to come of any message, or ctx ends, and returns the last look.
func (o observer) await(ctx context.Context, all []expectation) ([]sight, error) {
	seen := make([]sight, len(all))
	bound, cancel := context.WithTimeout(ctx, patience+delay)
	defer cancel()
	err := poll(bound, func() (bool, error) {
		settled := true
		for i, e := range all {
			var err error
			if seen[i], err = o.look(ctx, e.id); err != nil {
				return false, err
			}
			settled = settled && seen[i].settled(e)
		}
		return settled, nil
	})
	if bound.Err() != nil && ctx.Err() == nil {
		return seen, nil // time is up: what was seen is the result
	}
	return seen, err
}
