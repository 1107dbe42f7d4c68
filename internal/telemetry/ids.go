package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"
)

// ids makes the IDs of spans: at random, but for a span with a key always the same. A workflow is run again from its history
// wherever it goes on, and its span must be the parent of what happened before as well as after.
type ids struct{}

type keyOf struct{}

func withKey(ctx context.Context, key string) context.Context {
	if key == "" {
		return ctx
	}
	return context.WithValue(ctx, keyOf{}, key)
}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	bytes := source(ctx)
	copy(t[:], bytes[8:])
	copy(s[:], bytes[:])
	return t, s
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (s trace.SpanID) {
	bytes := source(ctx)
	copy(s[:], bytes[:])
	return s
}

// source returns bytes that are all zero, and thus no ID, but once in 2^64 times.
func source(ctx context.Context) (bytes [32]byte) {
	if key, ok := ctx.Value(keyOf{}).(string); ok {
		return sha256.Sum256([]byte(key))
	}
	_, _ = rand.Read(bytes[:]) // never fails (documented in crypto/rand)
	return bytes
}
