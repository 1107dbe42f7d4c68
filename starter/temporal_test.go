package starter

import (
	"context"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/outbox"
)

// TestHeadersThatAreNoJSONNeverReachTemporal: there is no client that could be asked.
func TestHeadersThatAreNoJSONNeverReachTemporal(t *testing.T) {
	temporal := NewTemporal(nil, TemporalConfig{})
	for _, headers := range []string{`{"a":1.}`, `{"a":1`, `{'a':1}`, "{\"a\":\"\x01\"}", ""} {
		r := row(1, "a")
		r.Headers = []byte(headers)
		if o := temporal.Start(t.Context(), &r, 0); o.Class != Never || !o.Certain || o.Reason == "" {
			t.Errorf("%q: %+v, want never, for certain", headers, o)
		}
	}
}

// TestWhatIsCertainlyBadMovesAtOnce: nothing else has started that could show that the message is to blame, and many at once
// are no sign of a wrong configuration.
func TestWhatIsCertainlyBadMovesAtOnce(t *testing.T) {
	eachMigrated(t, func(t *testing.T, s *testdb.Schema) {
		temporal := NewTemporal(nil, TemporalConfig{}) // a start that asks for a client would crash
		rec := newRecorder()
		rec.answer = func(ctx context.Context, row *outbox.Row, _ int) Outcome { return temporal.Start(ctx, row, 0) }
		const n = 2 * refusalsToClose
		enqueue(t, s, messages("bad", n)...)
		for _, statement := range []string{
			"ALTER TABLE outbox_messages DROP CONSTRAINT outbox_headers_are_a_json_object", // MariaDB lets this pass, MySQL does not
			`UPDATE outbox_messages SET headers = '{"a":1.}' WHERE message_id < '~'`,
		} {
			if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		relay := startRelay(t, s, rec, quick())
		testdb.Eventually(t, "all in outbox_failed", func() bool { return len(failedRows(t, s)) == n })
		for id, reason := range failedRows(t, s) {
			if reason != outbox.ReasonNeverStarts {
				t.Errorf("%s: %s", id, reason)
			}
		}
		rec.set(func(r *recorder) {
			for id, n := range r.attempts {
				if n != 1 {
					t.Errorf("%s: %d attempts", id, n)
				}
			}
		})
		relay.conds.await(t, CondFailed, true)
		if n, c := relay.conds.find(CondMisconfigured, true); n != 0 {
			t.Errorf("reported: %+v", c)
		}
		if rec.total() != 0 || pending(t, s) != 0 {
			t.Errorf("%d have started, %d rows are left", rec.total(), pending(t, s))
		}
	})
}

// encodingClient writes the memo as the SDK does, with the converter of its user.
type encodingClient struct {
	client.Client
	dc   converter.DataConverter
	memo map[string]*commonpb.Payload
	id   string
}

func (c *encodingClient) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	if c.memo != nil {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("already", "", "")
	}
	c.memo, c.id = map[string]*commonpb.Payload{}, o.ID
	for k, v := range o.Memo {
		p, err := c.dc.ToPayload(v)
		if err != nil {
			return nil, err
		}
		c.memo[k] = p
	}
	return nil, nil
}

func (c *encodingClient) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: c.id}, Memo: &commonpb.Memo{Fields: c.memo},
	}}, nil
}

// TestTheMemoIsReadByTheClientsConverter: otherwise each message that comes twice would be taken for another one with its ID.
func TestTheMemoIsReadByTheClientsConverter(t *testing.T) {
	dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	temporal := NewTemporal(&encodingClient{dc: dc}, TemporalConfig{DataConverter: dc})
	first, other := row(1, "a"), row(1, "a")
	other.Payload = []byte("2")
	for i, c := range []struct {
		row  *outbox.Row
		want Class
	}{{&first, Started}, {&first, Duplicate}, {&other, Reused}} {
		c.row.CreatedAt = "2026-01-01 00:00:00.000000"
		if o := temporal.Start(t.Context(), c.row, 0); o.Class != c.want {
			t.Errorf("start %d: %v %s, want %v", i+1, o.Class, o.Reason, c.want)
		}
	}
}
