package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/hotsku/hotsku/system/seckill"
)

// givenKey is under which a span's own ids are in its context.
type givenKey struct{}

// givenIDs gives a span the ids its context brings, and random ones
// otherwise.
type givenIDs struct{}

func (givenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if own, ok := spanContext(given(ctx)); ok {
		return own.TraceID(), own.SpanID()
	}
	var id trace.TraceID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1)
	return id, randomSpan()
}

func (givenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if own, ok := spanContext(given(ctx)); ok {
		return own.SpanID()
	}
	return randomSpan()
}

func given(ctx context.Context) seckill.Traceparent {
	own, _ := ctx.Value(givenKey{}).(seckill.Traceparent)
	return own
}

// randomSpan is not seeded: span ids are seen by nobody but the trace store.
func randomSpan() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}
