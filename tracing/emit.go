package tracing

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"parley/broker"
	"parley/host"
)

// maxEvents is how many log lines of a guest a span carries (field case 35).
const maxEvents = 128

// system is messaging.system.
var system = semconv.MessagingSystemKey.String("parley")

// emit makes the spans of at.
func (at *attempt) emit(tracer trace.Tracer) {
	own := ids{at.context.TraceID(), at.context.SpanID()}
	if at.settled.Consequence == broker.Released || at.uncertain {
		own.span = randomIDs().span // the counted attempt of the same number has the derived one
	}
	ctx := withIDs(context.Background(), own)
	if at.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, at.parent)
	}
	ctx, span := tracer.Start(ctx, clean("process "+at.queue), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithTimestamp(at.start), trace.WithLinks(at.linkList()...), trace.WithAttributes(at.attributes()...))
	at.addLogs(span)
	if at.final() {
		span.SetStatus(codes.Error, clean(at.reason()+": "+at.description()))
	}
	ctx = context.WithValue(ctx, idsKey{}, nil)
	if !at.dead {
		at.emitGuest(ctx, tracer)
		at.emitSettle(ctx, tracer)
	}
	span.End(trace.WithTimestamp(at.end()))
}

func (at *attempt) end() time.Time {
	switch {
	case !at.settled.End.IsZero():
		return at.settled.End
	case !at.ended.IsZero():
		return at.ended
	}
	return at.start
}

func (at *attempt) linkList() []trace.Link {
	links := make([]trace.Link, 0, len(at.links)+1)
	for _, l := range at.links {
		links = append(links, trace.Link{SpanContext: l, Attributes: []attribute.KeyValue{attribute.String("parley.link", "producer")}})
	}
	if at.previous.IsValid() {
		links = append(links, trace.Link{SpanContext: at.previous, Attributes: []attribute.KeyValue{attribute.String("parley.link", "previous_attempt")}})
	}
	return links
}

// attributes are those of the attempt's span. Bodies and properties are never among them.
func (at *attempt) attributes() []attribute.KeyValue {
	m := &at.lead
	a := []attribute.KeyValue{
		system, semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(clean(at.queue)),
		semconv.MessagingMessageID(clean(m.MessageID)),
		attribute.String("parley.namespace", clean(at.t.opt.Namespace)),
		attribute.Int64("parley.sequence_number", m.SequenceNumber),
		attribute.String("parley.outcome", at.outcome()),
		attribute.Int("parley.attempt", at.number),
		attribute.Int("parley.delivery_count", m.DeliveryCount),
		attribute.String("parley.reader", clean(at.reader)),
	}
	if at.messages > 1 {
		a = append(a, semconv.MessagingBatchMessageCount(at.messages))
	}
	if !at.dead {
		a = append(a, semconv.MessagingMessageBodySize(at.bodySize), attribute.String("parley.plugin", clean(at.plugin)), attribute.String("parley.plugin.digest", at.digest))
	}
	if at.uncertain {
		a = append(a, attribute.Bool("parley.uncertain", true))
	}
	if at.result.Fuel > 0 {
		a = append(a, attribute.Int64("parley.fuel", int64(at.result.Fuel)))
	}
	text := func(key attribute.Key, v string) {
		if v != "" {
			a = append(a, key.String(clean(v)))
		}
	}
	text(semconv.MessagingMessageConversationIDKey, m.Conversation)
	text("parley.session_id", m.SessionID)
	text("parley.message_type", m.Type)
	text("parley.trap", at.result.Trap)
	if r := at.reason(); r != "" {
		text(semconv.ErrorTypeKey, r)
		text("parley.error", at.description())
	}
	return a
}

// addLogs makes events of the last lines the guest logged.
func (at *attempt) addLogs(span trace.Span) {
	lines := at.result.Logs
	if n := len(lines) - maxEvents; n > 0 {
		span.SetAttributes(attribute.Int("parley.log_lines_left_out", n))
		lines = lines[n:]
	}
	for i := range lines {
		l := &lines[i]
		span.AddEvent("log", trace.WithTimestamp(l.Time), trace.WithAttributes(
			attribute.String("log.message", clean(l.Text)), attribute.String("log.severity", slog.Level(l.Level).String()),
			attribute.String("log.stream", clean(l.Stream))))
	}
}

// emitGuest makes the span of the guest's call and the guest's own below it.
func (at *attempt) emitGuest(ctx context.Context, tracer trace.Tracer) {
	if at.ended.IsZero() {
		return
	}
	end := at.ended
	if at.result.Elapsed > 0 && at.start.Add(at.result.Elapsed).Before(end) {
		end = at.start.Add(at.result.Elapsed)
	}
	ctx, span := tracer.Start(ctx, clean("guest "+at.plugin), trace.WithTimestamp(at.start),
		trace.WithAttributes(attribute.String("parley.plugin.digest", at.digest)))
	for _, s := range at.result.Spans[:min(len(at.result.Spans), maxEvents)] {
		emitCustom(ctx, tracer, s)
	}
	span.End(trace.WithTimestamp(end))
}

func emitCustom(ctx context.Context, tracer trace.Tracer, s host.GuestSpan) {
	_, span := tracer.Start(ctx, clean(s.Name), trace.WithTimestamp(s.Start))
	span.End(trace.WithTimestamp(s.End))
}

// emitSettle makes the span of the settlement, and one for each message that became visible with it.
func (at *attempt) emitSettle(ctx context.Context, tracer trace.Tracer) {
	if at.settled.Start.IsZero() {
		return
	}
	stamp, end := trace.WithTimestamp(at.settled.Start), trace.WithTimestamp(at.settled.End)
	_, span := tracer.Start(ctx, clean("settle "+at.queue), stamp, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		system, semconv.MessagingOperationTypeSettle, semconv.MessagingOperationName("settle"),
		semconv.MessagingDestinationName(clean(at.queue)), attribute.String("parley.outcome", at.outcome())))
	span.End(end)
	if at.settled.Consequence != broker.Committed {
		return
	}
	for _, s := range at.sends {
		sctx := withIDs(ctx, ids{at.context.TraceID(), s.id})
		_, span := tracer.Start(sctx, clean("send "+s.to), stamp, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			sendAttributes(s.to, s.message)...))
		span.End(end)
	}
}

func sendAttributes(to, message string) []attribute.KeyValue {
	a := []attribute.KeyValue{
		system, semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("send"), semconv.MessagingDestinationName(clean(to)),
	}
	if message != "" {
		a = append(a, semconv.MessagingMessageID(clean(message)))
	}
	return a
}
