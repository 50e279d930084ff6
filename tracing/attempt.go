package tracing

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"parley/broker"
	"parley/host"
)

// attempt is what is kept of a delivery attempt until its span is made.
type attempt struct {
	t      *Telemetry
	traced bool // a span will be made of it

	queue, plugin, digest, reader string

	number    int
	messages  int
	lead      broker.Message // the message that names the attempt; its body is dropped
	bodySize  int
	parent    trace.SpanContext   // the producer's, when this is its child
	links     []trace.SpanContext // producers
	previous  trace.SpanContext   // the attempt before; not valid for the first
	context   trace.SpanContext
	start     time.Time
	ended     time.Time // of the handler; zero when it never ran to an end
	result    host.Result
	sends     []send
	settled   host.Settled
	dead      bool // its host died; nothing but the message is known
	uncertain bool // it may never have started
}

// send is a staged message that carries a context of its own.
type send struct {
	to      string
	id      trace.SpanID
	message string // its id, "" when the client will make one
}

// Attempt implements host.Observer.
func (t *Telemetry) Attempt(a *host.Attempt) host.AttemptSpan {
	at := &attempt{
		t: t, queue: a.Queue, plugin: a.Plugin, digest: a.Digest, reader: a.Reader,
		number: a.Number, messages: len(a.Unit.Messages), start: a.Start,
	}
	if t.tracer != nil {
		at.identify(a.Unit.Messages)
	}
	return at
}

// identify finds the attempt's place: whose child it is, what it links to, and its own context.
func (at *attempt) identify(messages []broker.Message) {
	lead := leadOf(messages)
	at.lead = messages[lead]
	at.lead.Body = nil
	for i := range messages {
		at.bodySize += len(messages[i].Body)
		at.addProducer(extract(messages[i].Properties))
	}
	at.place()
}

// leadOf returns the index of the message that names the attempt: the one that failed most often, the first of those. It
// is the same for the next attempt at the same unit, whatever joins behind it.
func leadOf(messages []broker.Message) int {
	lead := 0
	for i := range messages {
		if messages[i].DeliveryCount > messages[lead].DeliveryCount {
			lead = i
		}
	}
	return lead
}

func (at *attempt) addProducer(sc trace.SpanContext) {
	if !sc.IsValid() {
		return
	}
	for _, l := range at.links {
		if l.Equal(sc) {
			return
		}
	}
	at.links = append(at.links, sc)
}

// place decides child or root. A unit of several producers, a later attempt and a resubmitted message are roots.
func (at *attempt) place() {
	_, again := at.lead.Properties[resubmitted]
	own := attemptIDs(at.t.opt.Namespace, at.queue, &at.lead, at.number)
	firstChild := len(at.links) == 1 && !again
	if at.number > 1 {
		before := attemptIDs(at.t.opt.Namespace, at.queue, &at.lead, at.number-1)
		if at.number == 2 && firstChild {
			before.trace = at.links[0].TraceID()
		}
		at.previous = contextOf(before, trace.FlagsSampled, trace.TraceState{})
	}
	if firstChild && at.number == 1 {
		at.parent, at.links = at.links[0], nil
		at.traced = at.parent.IsSampled()
		at.context = contextOf(ids{at.parent.TraceID(), own.span}, at.parent.TraceFlags(), at.parent.TraceState())
		return
	}
	var flags trace.TraceFlags
	if at.traced = at.t.keeps(own.trace); at.traced {
		flags = trace.FlagsSampled
	}
	at.context = contextOf(own, flags, trace.TraceState{})
}

// resubmitted is the property of a message that came back from a dead-letter queue.
const resubmitted = "parley.resubmitted"

func contextOf(i ids, flags trace.TraceFlags, state trace.TraceState) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: i.trace, SpanID: i.span, TraceFlags: flags, TraceState: state})
}

// Traceparent implements host.AttemptSpan.
func (at *attempt) Traceparent() string {
	if !at.context.IsValid() {
		return ""
	}
	return traceparent(at.context)
}

// Ran implements host.AttemptSpan: it gives each staged message a context of its own.
func (at *attempt) Ran(res *host.Result) {
	at.ended = time.Now()
	if at.context.IsValid() && res.Settlement.Verdict == broker.VerdictCommit {
		at.injectInto(res.Settlement.Effects)
	}
	at.result = *res
	at.result.Settlement.Effects = nil // not kept alive by a span that waits
	at.result.Settlement.Unit = nil
	if !at.traced {
		at.result.Logs, at.result.Spans = nil, nil
	}
}

// injectInto puts the context of its own PRODUCER span into each staged message. A context that the handler chose stays,
// if it belongs to this trace and is not merely the incoming one, copied with the other properties.
func (at *attempt) injectInto(effects []broker.Effect) {
	incoming := at.lead.Properties[Traceparent]
	for i := range effects {
		e := &effects[i]
		if e.Kind != broker.EffectSend && e.Kind != broker.EffectSendTo {
			continue
		}
		own := extract(e.Message.Properties)
		if own.IsValid() && own.TraceID() == at.context.TraceID() && traceparent(own) != incoming {
			continue
		}
		s := send{to: destination(e), id: childID(at.context, i), message: e.Message.MessageID}
		e.Message.Properties = inject(e.Message.Properties, contextOf(ids{at.context.TraceID(), s.id}, at.context.TraceFlags(), at.context.TraceState()))
		if at.traced {
			at.sends = append(at.sends, s)
		}
	}
}

func destination(e *broker.Effect) string {
	if e.Kind == broker.EffectSendTo {
		return e.Queue
	}
	return e.Conversation
}

// Settled implements host.AttemptSpan.
func (at *attempt) Settled(s host.Settled) {
	at.settled = s
	at.t.metrics.attempt(at)
	if at.traced {
		at.t.queue(at)
	}
}

// Died implements host.Observer: the span of an attempt whose host cannot make it any more (G9).
func (t *Telemetry) Died(d *broker.DeadAttempt) {
	now := time.Now()
	at := &attempt{
		t: t, queue: d.Queue, reader: d.Reader, number: d.Message.DeliveryCount + 1, messages: 1,
		start: now, settled: host.Settled{Consequence: d.Consequence}, dead: true, uncertain: d.Uncertain,
	}
	at.result.Settlement.Verdict = broker.VerdictRollback
	at.result.Settlement.FailReason = broker.ReasonHostCrash
	at.result.Settlement.FailText = "the host died or stalled past its lease"
	t.metrics.attempt(at)
	if t.tracer == nil {
		return
	}
	at.identify([]broker.Message{d.Message})
	if at.traced {
		t.queue(at)
	}
}

// LeaseLost implements host.Observer.
func (t *Telemetry) LeaseLost(queue, _ string, units int) { t.metrics.leaseLost(queue, units) }
