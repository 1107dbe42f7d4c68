package outbox_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncepost/oncepost/outbox"
)

// The span that ctx is in becomes the parent of the start of the workflow. Where there is none the headers stay empty, and the
// message begins a trace of its own.
func ExampleEnqueue_traceparent() {
	db, done := openExample()
	defer done()
	ctx := withSpan(context.Background()) // in a service: the context of the request that is served

	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	_, err := outbox.Enqueue(ctx, db, outbox.Message{
		EventType: "welcome",
		Payload:   map[string]string{"company_id": "c_42", "company_name": "Example", "email": "first@example.com"},
		Headers:   headers,
	})
	if err != nil {
		log.Panic(err)
	}

	var stored string
	if err := db.QueryRowContext(ctx, "SELECT headers FROM outbox_messages WHERE message_id < '~'").Scan(&stored); err != nil {
		log.Panic(err)
	}
	fmt.Println(stored)
	// Output:
	// {"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
}

func withSpan(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c},
		SpanID:     trace.SpanID{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31},
		TraceFlags: trace.FlagsSampled,
	}))
}
