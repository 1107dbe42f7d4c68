// Package failed is what a person does about what has failed: rows of outbox_failed, which could never start, and workflows
// that have closed without success. It lists and shows them, puts rows back into outbox_messages, resets workflows, and deletes
// rows. The ledger of sends keeps a retried message from sending twice what was sent before.
package failed

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// The two kinds of what has failed.
const (
	KindRow      = "row"
	KindWorkflow = "workflow"
)

// Item is one failed message. No payload and no address is in it. Times are UTC.
type Item struct {
	Kind      string `json:"kind"`
	MessageID string `json:"message_id"`
	EventType string `json:"event_type"`
	// Reason is a row's never_starts or id_reused; of a workflow its status: Failed, TimedOut or Terminated.
	Reason string `json:"reason"`
	// Class is the type of a failed workflow's error: Rejected, InvalidPayload …
	Class    string    `json:"error_class,omitempty"`
	FailedAt time.Time `json:"failed_at"`
	FailedID int64     `json:"failed_id,omitempty"` // a row's
	RunID    string    `json:"run_id,omitempty"`    // a workflow's
}

// Filter says what to list.
type Filter struct {
	EventType string // "": all
	Kind      string // "": both
	Limit     int    // at most so many; 0: all
}

// Validate refuses a name that no event type can have: it becomes part of a query.
func (f Filter) Validate() error {
	if f.EventType != "" && !eventType.MatchString(f.EventType) {
		return fmt.Errorf("%q is no event type: they are 1 to 64 letters, digits, dots and dashes", f.EventType)
	}
	return nil
}

var eventType = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}\z`)

// List returns what has failed, newest first, and whether there is more than the limit.
func List(ctx context.Context, rows *Rows, workflows *Workflows, f Filter) (all []Item, more bool, err error) {
	if err := f.Validate(); err != nil {
		return nil, false, err
	}
	ask := f
	if f.Limit > 0 {
		ask.Limit++ // one more tells that there are more
	}
	if f.Kind != KindWorkflow {
		if all, err = rows.list(ctx, ask); err != nil {
			return nil, false, err
		}
	}
	if f.Kind != KindRow {
		closed, err := workflows.list(ctx, ask)
		if err != nil {
			return nil, false, err
		}
		all = append(all, closed...)
	}
	slices.SortStableFunc(all, func(a, b Item) int {
		return cmp.Or(b.FailedAt.Compare(a.FailedAt), cmp.Compare(b.FailedID, a.FailedID))
	})
	if f.Limit > 0 && len(all) > f.Limit {
		return all[:f.Limit], true, nil
	}
	return all, false, nil
}

// addressLike is wider than addresses, as in package alerts: a failure's text may quote what somebody else said.
var addressLike = regexp.MustCompile(`("[^"\n]*"|[^\s<>"'();=]+)(@|%40)[^\s<>"'(),;:=]+`)

// Mask hides addresses in a text.
func Mask(s string) string { return addressLike.ReplaceAllString(s, "(address)") }
