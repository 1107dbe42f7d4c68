package starter

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/outbox"
	"github.com/oncepost/oncepost/schemas"
)

var (
	attributeState = temporal.NewSearchAttributeKeyKeyword(schemas.AttributeState)
	attributeSince = temporal.NewSearchAttributeKeyTime(schemas.AttributeSince)
)

// Temporal starts workflows through a Temporal client.
type Temporal struct {
	client    client.Client
	namespace string
	taskQueue string
	eager     bool
	data      converter.DataConverter
}

// TemporalConfig configures NewTemporal.
type TemporalConfig struct {
	// Namespace is the client's. Default "default".
	Namespace string
	// TaskQueue for workflows. Default schemas.WorkflowTaskQueue.
	TaskQueue string
	// Eager asks for eager starts: a worker made from the same client takes the first task at once.
	Eager bool
	// DataConverter is the client's, where it has one of its own: the memo is written by it. Default the SDK's.
	DataConverter converter.DataConverter
}

// NewTemporal returns a Starter on c.
func NewTemporal(c client.Client, cfg TemporalConfig) *Temporal {
	data := cfg.DataConverter
	if data == nil {
		data = converter.GetDefaultDataConverter()
	}
	return &Temporal{
		client: c, eager: cfg.Eager, data: data,
		namespace: or(cfg.Namespace, client.DefaultNamespace), taskQueue: or(cfg.TaskQueue, schemas.WorkflowTaskQueue),
	}
}

// Start implements Starter.
func (t *Temporal) Start(ctx context.Context, row *outbox.Row, delay time.Duration) Outcome {
	if row.Headers != nil { // MariaDB's JSON_VALID lets {"a":1.} pass, and both servers one name twice
		if err := schemas.CheckJSON(row.Headers); err != nil {
			return Outcome{Class: Never, Certain: true, Reason: "the headers are not valid JSON: " + err.Error()}
		}
	}
	hash := Hash(row.MessageID, row.EventType, row.Payload)
	due := row.Now(time.Now()).Add(delay)
	state := schemas.StateSending
	if delay > 0 {
		state = schemas.StateScheduled
	}
	envelope := schemas.Envelope{
		MessageID: row.MessageID, EventType: row.EventType, Headers: row.Headers, DeliverAt: row.DeliverAt,
		DelayMicros: delay.Microseconds(), Priority: row.Priority, CreatedAt: outbox.RFC3339(row.CreatedAt),
	}
	_, err := t.client.ExecuteWorkflow(producerSpan(ctx, row.Headers), client.StartWorkflowOptions{
		ID:                    row.MessageID,
		TaskQueue:             t.taskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		// Without this a second start answers with the first run and no error.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StartDelay:                               delay,
		EnableEagerStart:                         t.eager && delay == 0,
		Memo:                                     map[string]any{schemas.MemoHash: hash},
		TypedSearchAttributes:                    temporal.NewSearchAttributes(attributeState.ValueSet(state), attributeSince.ValueSet(due)),
		Priority:                                 temporal.Priority{PriorityKey: row.Priority},
		StaticSummary:                            row.EventType,
	}, row.EventType, rawJSON(row.Payload), envelope)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return t.compare(ctx, row.MessageID, hash)
	}
	return classify(err)
}

// rawJSON passes bytes through as they are; the default converter would re-encode them, and round nothing but move much.
func rawJSON(b []byte) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: b,
	})
}

// Hash identifies what a message says. The parts are framed by their lengths, so that no two messages share one.
func Hash(id, eventType string, payload []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(id), []byte(eventType), payload} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:]) // never fails (documented in hash.Hash)
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compare tells whether the workflow with this ID was started for the same message. The ID is compared too: a server whose
// store folds case finds the workflow of another ID.
func (t *Temporal) compare(ctx context.Context, id, hash string) Outcome {
	d, err := t.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return Outcome{Class: Away, Reason: "the workflow that has this ID was deleted just now"}
		}
		return classify(err)
	}
	info := d.GetWorkflowExecutionInfo()
	if other := info.GetExecution().GetWorkflowId(); other != id {
		return Outcome{Class: Reused, Reason: fmt.Sprintf("Temporal does not tell this ID from the workflow %q, run %s: they "+
			"differ in letter case only", other, info.GetExecution().GetRunId())}
	}
	var had string
	field := info.GetMemo().GetFields()[schemas.MemoHash]
	if field != nil {
		if err := t.data.FromPayload(field, &had); err != nil {
			had = ""
		}
	}
	if had == hash {
		return Outcome{Class: Duplicate}
	}
	return Outcome{Class: Reused, Reason: fmt.Sprintf("the workflow with this ID (type %s, run %s) was started for something "+
		"else: another event type, another payload, or not by oncepost", info.GetType().GetName(), info.GetExecution().GetRunId())}
}

// Namespace implements Starter.
func (t *Temporal) Namespace(ctx context.Context) (name, id string, o Outcome) {
	d, err := t.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.namespace})
	if err != nil {
		return t.namespace, "", classify(err)
	}
	return t.namespace, d.GetNamespaceInfo().GetId(), Outcome{}
}
