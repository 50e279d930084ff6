package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"parley/broker"
)

// Production is the sending of one message from outside of a handler.
type Production struct {
	t       *Telemetry
	to      string
	message string
	size    int
	parent  trace.SpanContext
	ids     ids
	start   time.Time
}

// Produce gives m, which is about to be sent to the queue or conversation to, a context of its own: that of the PRODUCER
// span which End makes. A context that m carries already, from whoever caused it, becomes its parent. Without an exporter
// m stays as it is.
func (t *Telemetry) Produce(to string, m *broker.Outgoing) *Production {
	if t.tracer == nil {
		return nil
	}
	p := &Production{t: t, to: to, message: m.MessageID, size: len(m.Body), parent: extract(m.Properties), ids: randomIDs(), start: time.Now()}
	sampled, state := t.keeps(p.ids.trace), trace.TraceState{}
	if p.parent.IsValid() {
		p.ids.trace, sampled, state = p.parent.TraceID(), p.parent.IsSampled(), p.parent.TraceState()
	}
	m.Properties = inject(m.Properties, contextOf(p.ids, trace.TraceFlags(0).WithSampled(sampled), state))
	if !sampled {
		return nil
	}
	return p
}

// End makes the span, of a message that was stored as r, or was not for err. A nil Production makes none.
func (p *Production) End(r broker.Receipt, err error) {
	if p == nil {
		return
	}
	ctx := withIDs(context.Background(), p.ids)
	if p.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, p.parent)
	}
	if r.MessageID != "" {
		p.message = r.MessageID
	}
	_, span := p.t.tracer.Start(ctx, clean("send "+p.to), trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(p.start),
		trace.WithAttributes(append(sendAttributes(p.to, p.message), semconv.MessagingMessageBodySize(p.size))...))
	if err == nil {
		span.SetAttributes(attribute.Int64("parley.sequence_number", r.SequenceNumber))
	} else {
		span.SetStatus(codes.Error, clean(err.Error()))
	}
	span.End()
}
