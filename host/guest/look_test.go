package guest

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/host"
	"parley/sdk/abi"
)

// lookout answers looks: two messages on every queue, one row of each retained status in every conversation.
type lookout struct {
	err  error
	wait bool // for the end of the context
	size int  // of each body; 0: a short text
	got  *string
}

func (l lookout) Peek(ctx context.Context, path string, from int64, limit int) ([]broker.Message, error) {
	if l.got != nil {
		*l.got = path
	}
	if l.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	first := broker.Message{
		SequenceNumber: from + 8, MessageID: "id-8", Conversation: "c-7", Group: "g-7", Status: broker.StatusReady, PoisonCount: 5, DeliveryCount: 5,
		Type: "//shop/StockRequest", Body: l.body(),
	}
	second := first
	second.SequenceNumber, second.Status, second.PoisonCount, second.Conversation = from+9, broker.StatusRetrying, 0, ""
	return []broker.Message{first, second}[:min(limit, 2)], l.err
}

func (l lookout) Retained(context.Context, string) ([]broker.RetainedMessage, error) {
	var rows []broker.RetainedMessage
	for _, status := range []int{0, 1, 3} {
		m := broker.Message{MessageID: "id-" + string(rune('0'+status)), Status: broker.StatusRetained, Body: l.body()}
		rows = append(rows, broker.RetainedMessage{Message: m, RetainedStatus: status})
	}
	return rows, l.err
}

func (l lookout) body() []byte {
	if l.size > 0 {
		return make([]byte, l.size)
	}
	return []byte("a look")
}

func (p *proxy) field(index uint64, field uint32) string {
	p.t.Helper()
	n := p.call("message_field", index, uint64(field), 1000, 100)
	if n < 0 {
		p.t.Fatalf("message_field(%d, %d) returned %d", index, field, n)
	}
	b, _ := p.memory().Read(1000, uint32(n))
	return string(b)
}

func (p *proxy) number(index uint64, number uint32) int64 {
	p.t.Helper()
	if n := p.call("message_number", index, uint64(number), 1000); n != 0 {
		p.t.Fatalf("message_number(%d, %d) returned %d", index, number, n)
	}
	b, _ := p.memory().Read(1000, 8)
	return int64(binary.LittleEndian.Uint64(b))
}

// TestPeek: what a look found is read by the functions that read the unit's messages, and the next look replaces it.
func TestPeek(t *testing.T) {
	var path string
	p := newProxy(t, Options{Capabilities: []Capability{QueuePeek}, Peeker: lookout{got: &path}, Retainer: lookout{}}, dialogInvocation())
	p.put(0, "shop")
	if n := p.call("queue_peek", 0, 4, 100, 10); n != 2 || path != "shop" {
		t.Fatalf("queue_peek returned %d, and asked for %q", n, path)
	}
	const first, second = uint64(abi.FirstSeen), uint64(abi.FirstSeen) + 1
	if p.field(first, abi.FieldConversation) != "c-7" || p.field(first, abi.FieldStatus) != "ready" || p.field(first, abi.FieldQueue) != "shop" ||
		p.number(first, abi.NumberSequence) != 108 || p.number(first, abi.NumberRollbacks) != 5 || p.number(second, abi.NumberSequence) != 109 ||
		p.field(second, abi.FieldStatus) != "retrying" || p.number(first, abi.NumberRetained) != 1 {
		t.Error("the messages found are not what is there")
	}
	p.wipe()
	if n := p.call("message_body", first, 2000, 6); n != 6 {
		t.Errorf("message_body returned %d", n)
	}
	p.want(2000, "a look")
	if p.field(0, abi.FieldMessageID) != "id-1" || p.call("message_count") != 2 {
		t.Error("the messages of the unit have changed")
	}
	if n := p.call("dialog_retained", 0, 0); n != 3 {
		t.Fatalf("dialog_retained returned %d", n)
	}
	for i, want := range []int64{0, 1, 3} {
		if got := p.number(first+uint64(i), abi.NumberRetained); got != want {
			t.Errorf("row %d has the status %d, want %d", i, got, want)
		}
	}
	if p.field(first, abi.FieldStatus) != "retained" || p.field(first, abi.FieldQueue) != "orders" {
		t.Error("a row is not kept on the queue of the unit")
	}
	if n := p.call("message_field", first+3, 1, 0, 0); n != int64(abi.ErrIndex) {
		t.Errorf("a row beyond the last gave %d", n)
	}
	p.in.reset(dialogInvocation())
	if n := p.call("message_field", first, 1, 0, 0); n != int64(abi.ErrIndex) {
		t.Errorf("an attempt sees what the one before found: %d", n)
	}
}

// TestLookRefused: an error of the broker becomes a code, too much to hold is refused, and nothing is found then.
func TestLookRefused(t *testing.T) {
	for _, c := range []struct {
		look lookout
		want abi.Errno
	}{
		{lookout{err: broker.ErrUnknownEntity}, abi.ErrUnknownQueue},
		{lookout{err: broker.ErrQuota}, abi.ErrRefused},
		{lookout{size: 2 << 20}, abi.ErrTooLarge},
	} {
		p := newProxy(t, Options{Capabilities: Capabilities(), Peeker: c.look, Retainer: c.look, Limits: Limits{Memory: 4 << 20}}, dialogInvocation())
		p.put(0, "shop")
		if n := p.call("queue_peek", 0, 4, 0, 2); n != int64(c.want) {
			t.Errorf("queue_peek returned %d, want %s", n, c.want.Name())
		}
		if n := p.call("dialog_retained", 0, 0); n != int64(c.want) {
			t.Errorf("dialog_retained returned %d, want %s", n, c.want.Name())
		}
		if n := p.call("message_field", uint64(abi.FirstSeen), 1, 0, 0); n != int64(abi.ErrIndex) {
			t.Errorf("a refused look found something: %d", n)
		}
	}
}

// TestLookIsCharged: a look costs fuel by what it brings.
func TestLookIsCharged(t *testing.T) {
	const size = 1 << 20
	p := newProxy(t, Options{Capabilities: Capabilities(), Peeker: lookout{size: size}}, dialogInvocation())
	p.put(0, "shop")
	p.in.begin(t.Context(), 1<<40, 0)
	before := int64(p.in.counter.Get())
	p.call("queue_peek", 0, 4, 0, 1)
	if used := before - int64(p.in.counter.Get()); used < size/bytesPerUnit {
		t.Errorf("a look at %d bytes cost %d units", size, used)
	}
}

// TestLookWaitsNoLongerThanTheGuestMay: a broker that does not answer is no way around the time limit; that it did not is not the
// handler's failure.
func TestLookWaitsNoLongerThanTheGuestMay(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{
		Capabilities: Capabilities(), Peeker: lookout{wait: true}, Limits: Limits{Time: 300 * time.Millisecond},
	})
	r := attemptOf(t, p, "peek")
	wantFault(t, "a look that waits", r, host.ErrNoAnswer, "300ms")
	if r.Elapsed > 2*time.Second {
		t.Errorf("it took %v", r.Elapsed)
	}
	inv, ctx := invocation(plain("peek")), context.Context(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := p.Run(ctx, inv); r.Settlement.Verdict != broker.VerdictRelease {
		t.Errorf("a host that drains: %+v", r.Settlement)
	}
}

// TestCapabilityDenied: a handler that fails for want of a capability has that as the reason of its outcome.
func TestCapabilityDenied(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{Peeker: lookout{}})
	wantRollback(t, attemptOf(t, p, "peek"), broker.ReasonCapabilityDenied, "the plugin lacks the capability queue_peek: ERR_DENIED")
	wantRollback(t, attemptOf(t, p, "enable"), broker.ReasonCapabilityDenied, "the plugin lacks the capability queue_enable: ERR_DENIED")
	wantCommit(t, attemptOf(t, p, "peek quietly")) // it is the handler that decides
	wantCommit(t, attemptOf(t, load(t, goGuest(t, "testdata/verbs"), Options{Peeker: lookout{}, Capabilities: []Capability{QueuePeek}}), "peek"))
}

func TestUnknownCapability(t *testing.T) {
	_, err := Load(t.Context(), wat(t, "empty"), Options{Capabilities: []Capability{"queue_delete"}})
	if err == nil || !strings.Contains(err.Error(), "queue_delete") {
		t.Errorf("got %v", err)
	}
}

// TestNeeds: what a module imports tells which capabilities it needs.
func TestNeeds(t *testing.T) {
	info, err := Inspect(proxyModule(), Limits{})
	if err != nil || len(info.Needs) != 3 || info.Needs[0] != QueuePeek {
		t.Errorf("%v, %v", info.Needs, err)
	}
	if info, err := Inspect(wat(t, "copies"), Limits{}); err != nil || len(info.Needs) != 0 {
		t.Errorf("%v, %v", info.Needs, err)
	}
}
