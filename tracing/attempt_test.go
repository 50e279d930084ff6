package tracing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"parley/broker"
	"parley/host"
)

const producer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func parse(t *testing.T, tp string) trace.SpanContext {
	t.Helper()
	sc := extract(map[string]string{Traceparent: tp})
	if !sc.IsValid() {
		t.Fatalf("traceparent %q is not valid", tp)
	}
	return sc
}

func TestFirstAttemptIsTheChildOfItsProducer(t *testing.T) {
	b := setup(t, nil)
	tp, _ := b.deliver([]broker.Message{message("m1", 0, map[string]string{"Traceparent": producer, "tracestate": "a=b"})}, host.Result{
		Fuel: 42, Elapsed: time.Millisecond,
		Spans: []host.GuestSpan{{Name: "look up", Start: epoch, End: epoch.Add(time.Microsecond)}},
	}, broker.Committed)
	s := b.named("process orders")
	if got := s.Parent.SpanID(); got != parse(t, producer).SpanID() {
		t.Errorf("parent: got %s, want the producer", got)
	}
	if got := traceparent(s.SpanContext); got != tp {
		t.Errorf("the guest was told %s, the span is %s", tp, got)
	}
	if got := s.SpanContext.TraceState().String(); got != "a=b" {
		t.Errorf("tracestate: got %q, want a=b", got)
	}
	if s.SpanKind != trace.SpanKindConsumer || s.Status.Code != codes.Unset || len(s.Links) != 0 {
		t.Errorf("got kind %v, status %v, %d links; want a consumer without status and links", s.SpanKind, s.Status.Code, len(s.Links))
	}
	for key, want := range map[string]string{
		"messaging.system": "parley", "messaging.operation.type": "process", "messaging.operation.name": "process",
		"messaging.destination.name": "orders", "messaging.message.id": "m1", "messaging.message.body.size": "11",
		"parley.outcome": "committed", "parley.attempt": "1", "parley.delivery_count": "0", "parley.plugin": "stock",
		"parley.plugin.digest": "d1", "parley.fuel": "42", "parley.sequence_number": "7", "parley.namespace": "shop",
	} {
		if got := value(s, key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	guest := b.named("guest stock")
	for name, parent := range map[string]trace.SpanID{
		"guest stock": s.SpanContext.SpanID(), "settle orders": s.SpanContext.SpanID(), "look up": guest.SpanContext.SpanID(),
	} {
		if got := b.named(name).Parent.SpanID(); got != parent {
			t.Errorf("parent of %q: got %s, want %s", name, got, parent)
		}
	}
	for _, s := range b.spans() {
		if strings.Contains(fmt.Sprint(s.Attributes, s.Events), "secret") {
			t.Errorf("span %q carries the body", s.Name)
		}
	}
}

func TestRetriesLinkToTheProducerAndTheAttemptBefore(t *testing.T) { // field case S1 trace-retry-links
	first, second, third := setup(t, nil), setup(t, nil), setup(t, nil) // three hosts that share nothing
	props := map[string]string{Traceparent: producer}
	tp1, _ := first.deliver([]broker.Message{message("m1", 0, props)}, failed(broker.ReasonTrap, "unreachable"), broker.RolledBack)
	tp2, _ := second.deliver([]broker.Message{message("m1", 1, props)}, failed(broker.ReasonHandlerError, "no"), broker.RolledBack)
	tp3, _ := third.deliver([]broker.Message{message("m1", 2, props)}, host.Result{}, broker.Committed)

	for i, c := range []struct {
		b        *bundle
		own      string
		previous string
	}{{first, tp1, ""}, {second, tp2, tp1}, {third, tp3, tp2}} {
		s := c.b.named("process orders")
		if got := traceparent(s.SpanContext); got != c.own {
			t.Errorf("attempt %d: got span %s, want %s", i+1, got, c.own)
		}
		if s.Status.Code != codes.Unset {
			t.Errorf("attempt %d: got status %v; only a final outcome is an error", i+1, s.Status.Code)
		}
		if c.previous == "" {
			continue
		}
		if s.Parent.IsValid() {
			t.Errorf("attempt %d: got a parent, want a new trace", i+1)
		}
		want := []trace.SpanContext{parse(t, producer), parse(t, c.previous)}
		if len(s.Links) != 2 {
			t.Fatalf("attempt %d: got %d links, want 2", i+1, len(s.Links))
		}
		for k, l := range s.Links {
			if l.SpanContext.TraceID() != want[k].TraceID() || l.SpanContext.SpanID() != want[k].SpanID() {
				t.Errorf("attempt %d link %d: got %s, want %s", i+1, k, l.SpanContext.SpanID(), want[k].SpanID())
			}
		}
	}
}

func TestAResubmittedMessageStartsANewTrace(t *testing.T) { // field case S1
	b := setup(t, nil)
	b.deliver([]broker.Message{message("m1", 0, map[string]string{Traceparent: producer, resubmitted: "3"})}, host.Result{}, broker.Committed)
	s := b.named("process orders")
	if s.Parent.IsValid() || s.SpanContext.TraceID() == parse(t, producer).TraceID() {
		t.Error("got the producer's trace of yesterday, want a new one")
	}
	if len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != parse(t, producer).SpanID() {
		t.Errorf("links: got %v, want one to the producer", s.Links)
	}
}

func TestFinalOutcomesAreErrors(t *testing.T) {
	dead := host.Result{Settlement: broker.Settlement{Verdict: broker.VerdictDeadLetter, Reason: "NoRepository", Description: "none"}}
	for _, c := range []struct {
		name    string
		res     host.Result
		con     broker.Consequence
		outcome string
		reason  string
		status  codes.Code
	}{
		{"dead-lettered by the handler", dead, broker.DeadLettered, "dead_lettered", "NoRepository", codes.Error},
		{"dead-lettered by the count", failed(broker.ReasonTrap, "x"), broker.DeadLettered, "dead_lettered", "Trap", codes.Error},
		{"queue turned off", failed(broker.ReasonFuelExhausted, "x"), broker.QueueTurned, "queue_turned_off", "FuelExhausted", codes.Error},
		{"rolled back", failed(broker.ReasonTrap, "x"), broker.RolledBack, "rolled_back", "Trap", codes.Unset},
		{"refused", host.Result{}, broker.Refused, "refused", "EffectsRefused", codes.Unset},
		{"lost", host.Result{}, broker.Lost, "lost", "LeaseLost", codes.Unset},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t, nil)
			b.deliver([]broker.Message{message("m1", 0, nil)}, c.res, c.con)
			s := b.named("process orders")
			if value(s, "parley.outcome") != c.outcome || value(s, "error.type") != c.reason || s.Status.Code != c.status {
				t.Errorf("got %s, %s, %v; want %s, %s, %v", value(s, "parley.outcome"), value(s, "error.type"), s.Status.Code, c.outcome, c.reason, c.status)
			}
		})
	}
}

func TestAReleasedAttemptHasIDsOfItsOwn(t *testing.T) {
	b := setup(t, nil)
	m := []broker.Message{message("m1", 0, nil)}
	b.deliver(m, host.Result{Settlement: broker.Settlement{Verdict: broker.VerdictRelease}}, broker.Released)
	tp, _ := b.deliver(m, host.Result{}, broker.Committed)
	var seen []trace.SpanID
	for _, s := range b.spans() {
		if s.Name == "process orders" {
			seen = append(seen, s.SpanContext.SpanID())
		}
	}
	if len(seen) != 2 || seen[0] == seen[1] || seen[1] != parse(t, tp).SpanID() {
		t.Errorf("got spans %v, want two, the second one as derived", seen)
	}
}

func TestADeadHostsAttemptHasItsSpan(t *testing.T) { // G9
	b := setup(t, nil)
	tp, _ := b.deliver([]broker.Message{message("m1", 1, nil)}, host.Result{}, broker.Committed) // what the dead host had told its guest
	b.named("process orders")
	b.kept.Reset()
	b.Died(&broker.DeadAttempt{Queue: "orders", Reader: "h:1:1", Message: message("m1", 1, nil), Consequence: broker.RolledBack})
	s := b.named("process orders")
	if got := traceparent(s.SpanContext); got != tp {
		t.Errorf("span: got %s, want %s", got, tp)
	}
	if value(s, "error.type") != broker.ReasonHostCrash || value(s, "parley.attempt") != "2" {
		t.Errorf("got %s, attempt %s; want HostCrash, 2", value(s, "error.type"), value(s, "parley.attempt"))
	}
	if got := names(b.spans()); len(got) != 1 {
		t.Errorf("spans: got %v, want the attempt's alone", got)
	}
}

func TestStagedMessagesCarryAContextOfTheirOwn(t *testing.T) {
	b := setup(t, nil)
	incoming := map[string]string{Traceparent: producer, "event": "push"}
	custom := "00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01"
	mine := map[string]string{"event": "push"}
	_, effects := b.deliver([]broker.Message{message("m1", 0, incoming)}, host.Result{Settlement: broker.Settlement{Effects: []broker.Effect{
		{Kind: broker.EffectSendTo, Queue: "triaged", Message: broker.Outgoing{Properties: mine}},
		{Kind: broker.EffectPutState, Key: "k"},
		{Kind: broker.EffectSend, Conversation: "c1", Message: broker.Outgoing{Properties: incoming}},
		{Kind: broker.EffectSendTo, Queue: "own", Message: broker.Outgoing{Properties: map[string]string{Traceparent: custom}}},
	}}}, broker.Committed)
	for i, name := range map[int]string{0: "send triaged", 2: "send c1"} {
		s := b.named(name)
		if got := effects[i].Message.Properties[Traceparent]; got != traceparent(s.SpanContext) {
			t.Errorf("%s: got traceparent %q, want %q", name, got, traceparent(s.SpanContext))
		}
		if s.SpanKind != trace.SpanKindProducer || s.Parent.SpanID() != b.named("process orders").SpanContext.SpanID() {
			t.Errorf("%s: got %v below %s, want a producer below the attempt", name, s.SpanKind, s.Parent.SpanID())
		}
		if effects[i].Message.Properties["event"] != "push" {
			t.Errorf("%s: the handler's own properties are gone", name)
		}
	}
	if got := effects[3].Message.Properties[Traceparent]; got != custom {
		t.Errorf("a context that the handler chose: got %q, want %q", got, custom)
	}
	if len(mine) != 1 || incoming[Traceparent] != producer {
		t.Error("the handler's or the producer's own map was changed")
	}
}

func TestNothingIsShownOfEffectsThatDidNotHappen(t *testing.T) {
	b := setup(t, nil)
	b.deliver([]broker.Message{message("m1", 0, nil)}, host.Result{Settlement: broker.Settlement{Effects: []broker.Effect{
		{Kind: broker.EffectSendTo, Queue: "triaged"},
	}}}, broker.Refused)
	if got := names(b.spans()); slices.Contains(got, "send triaged") {
		t.Errorf("spans of a refused commit: got %v, want no send", got)
	}
}

func TestLogLinesAreLimitedEvents(t *testing.T) { // field case 35
	b := setup(t, nil)
	res := host.Result{}
	for i := range 1000 {
		res.Logs = append(res.Logs, host.LogLine{Time: epoch, Text: fmt.Sprint("line ", i), Stream: "log"})
	}
	b.deliver([]broker.Message{message("m1", 0, nil)}, res, broker.Committed)
	s := b.named("process orders")
	if len(s.Events) != maxEvents || value(s, "parley.log_lines_left_out") != "872" {
		t.Fatalf("got %d events, %s left out; want 128 and 872", len(s.Events), value(s, "parley.log_lines_left_out"))
	}
	if got := s.Events[127].Attributes[0].Value.AsString(); got != "line 999" {
		t.Errorf("last event: got %q, want the last line", got)
	}
}

func TestABatchOfSeveralProducersIsARootWithLinks(t *testing.T) {
	b := setup(t, nil)
	other := "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	b.deliver([]broker.Message{
		message("m1", 0, map[string]string{Traceparent: producer}), message("m2", 0, map[string]string{Traceparent: other}),
		message("m3", 0, map[string]string{Traceparent: producer}),
	}, host.Result{}, broker.Committed)
	s := b.named("process orders")
	if s.Parent.IsValid() || len(s.Links) != 2 || value(s, "messaging.batch.message_count") != "3" {
		t.Errorf("got parent %v, %d links, %s messages; want a root with 2 links and 3", s.Parent.IsValid(), len(s.Links), value(s, "messaging.batch.message_count"))
	}
}

func TestAProducersDecisionIsFollowed(t *testing.T) {
	b := setup(t, nil)
	tp, _ := b.deliver([]broker.Message{message("m1", 0, map[string]string{Traceparent: producer[:53] + "00"})}, host.Result{}, broker.Committed)
	if !strings.HasSuffix(tp, "-00") || len(b.spans()) != 0 {
		t.Errorf("got %s and %d spans, want the unsampled context and none", tp, len(b.spans()))
	}
	none := setup(t, func(o *Options) { o.Ratio = -1 })
	none.deliver([]broker.Message{message("m1", 0, nil)}, host.Result{}, broker.Committed)
	if got := len(none.spans()); got != 0 {
		t.Errorf("spans at ratio 0: got %d", got)
	}
}

func TestProduce(t *testing.T) {
	b := setup(t, nil)
	m := broker.Outgoing{Properties: map[string]string{"event": "push"}}
	p := b.Produce("hooks", &m)
	p.End(broker.Receipt{SequenceNumber: 5, MessageID: "m9"}, nil)
	s := b.named("send hooks")
	if got := m.Properties[Traceparent]; got != traceparent(s.SpanContext) || m.Properties["event"] != "push" {
		t.Errorf("properties: got %v, want the span's context beside event", m.Properties)
	}
	if s.SpanKind != trace.SpanKindProducer || value(s, "messaging.message.id") != "m9" {
		t.Errorf("got %v of %s, want a producer of m9", s.SpanKind, value(s, "messaging.message.id"))
	}
	b.deliver([]broker.Message{message("m9", 0, m.Properties)}, host.Result{}, broker.Committed)
	if got := b.named("process orders").Parent.SpanID(); got != s.SpanContext.SpanID() {
		t.Errorf("parent of the attempt: got %s, want the producer %s", got, s.SpanContext.SpanID())
	}
	off, err := Setup(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := broker.Outgoing{}
	off.Produce("hooks", &plain).End(broker.Receipt{}, nil)
	if plain.Properties != nil || off.Observer() != nil {
		t.Error("a Telemetry that exports nothing touched the message, or observes")
	}
}
