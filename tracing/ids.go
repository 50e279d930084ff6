package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"parley/broker"
)

// ids is the identity of a span.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// attemptIDs derives the ids of attempt n at m: the trace counts only where the attempt is a root.
func attemptIDs(namespace, queue string, m *broker.Message, n int) ids {
	var buf [256]byte
	b := append(buf[:0], "parley attempt\x00"...)
	b = append(append(b, namespace...), 0)
	b = append(append(b, queue...), 0)
	b = append(append(b, m.MessageID...), 0)
	b = strconv.AppendInt(b, m.SequenceNumber, 10)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(n), 10)
	return hashed(b)
}

// childID derives the id of the i-th message that the attempt of sc stages.
func childID(sc trace.SpanContext, i int) trace.SpanID {
	t, s := sc.TraceID(), sc.SpanID()
	b := append(append(make([]byte, 0, 64), t[:]...), s[:]...)
	return hashed(binary.BigEndian.AppendUint64(b, uint64(i))).span
}

func hashed(b []byte) (i ids) {
	h := sha256.Sum256(b)
	copy(i.trace[:], h[:16])
	copy(i.span[:], h[16:24])
	if i.span == (trace.SpanID{}) { // the one value that means none
		i.span[0] = 1
	}
	return i
}

func randomIDs() (i ids) {
	binary.BigEndian.PutUint64(i.trace[:8], rand.Uint64())
	binary.BigEndian.PutUint64(i.trace[8:], rand.Uint64())
	binary.BigEndian.PutUint64(i.span[:], rand.Uint64()|1)
	return i
}

// idGenerator gives the span that is started next the ids that its context carries; otherwise random ones.
type idGenerator struct{}

var _ sdktrace.IDGenerator = idGenerator{}

type idsKey struct{}

func withIDs(ctx context.Context, i ids) context.Context { return context.WithValue(ctx, idsKey{}, i) }

// NewIDs implements sdktrace.IDGenerator.
func (idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, ok := ctx.Value(idsKey{}).(ids)
	if !ok {
		i = randomIDs()
	}
	return i.trace, i.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	i, ok := ctx.Value(idsKey{}).(ids)
	if !ok {
		i = randomIDs()
	}
	return i.span
}
