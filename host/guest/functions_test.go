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

var instant = time.Date(2026, 3, 8, 7, 0, 0, 123456789, time.UTC)

// dialogInvocation is an attempt with two messages of a dialog, all fields set.
func dialogInvocation() *host.Invocation {
	m := broker.Message{
		SequenceNumber: 4711, MessageID: "id-1", SessionID: "s-1", Kind: broker.KindApp, Type: "//shop/StockRequest",
		Conversation: "c-1", Group: "g-1", MessageSeq: 3, Service: "//shop/Inventory", FarService: "//shop/Line",
		Contract: "//shop/Stock", Validation: "N", Priority: 8, EnqueuedAt: instant, DeliveryCount: 2, PoisonCount: 2,
		Properties: map[string]string{"b": "2", "a": "1"}, Body: []byte("\x00\xff\xfe\r\n\x80"),
	}
	second := m
	second.Kind, second.Body, second.ExpiresAt, second.Properties = broker.KindEndDialog, nil, instant, nil
	inv := invocation(m, second)
	inv.Attempt, inv.Traceparent = 3, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	inv.Now = func() time.Time { return instant }
	inv.Unit.State = map[string][]byte{"left": []byte("10")}
	return inv
}

// TestReads: every function that returns a value writes exactly it, and returns its length.
func TestReads(t *testing.T) {
	p := newProxy(t, Options{Config: map[string]string{"stock": "gear=4"}}, dialogInvocation())
	const at = 1000
	read := func(want string, name string, args ...uint64) {
		t.Helper()
		for _, room := range []int{len(want), len(want) + 5} {
			p.wipe()
			p.put(2000, "a b left stock")
			if n := p.call(name, append(args, at, uint64(room))...); n != int64(len(want)) {
				t.Errorf("%s%v with room for %d returned %d, want %d", name, args, room, n, len(want))
			}
			p.want(at, want)
		}
		if want == "" {
			return
		}
		p.wipe()
		p.put(2000, "a b left stock")
		if n := p.call(name, append(args, at, uint64(len(want)-1))...); n != int64(len(want)) {
			t.Errorf("%s%v without room returned %d, want %d", name, args, n, len(want))
		}
		p.want(at, "") // nothing is written when it does not fit
	}
	for field, want := range map[uint32]string{
		abi.FieldMessageID: "id-1", abi.FieldSessionID: "s-1", abi.FieldType: "//shop/StockRequest",
		abi.FieldConversation: "c-1", abi.FieldGroup: "g-1", abi.FieldService: "//shop/Inventory",
		abi.FieldFarService: "//shop/Line", abi.FieldContract: "//shop/Stock", abi.FieldValidation: "N",
		abi.FieldKind: "S", abi.FieldQueue: "orders", abi.FieldStatus: "locked",
	} {
		read(want, "message_field", 0, uint64(field))
	}
	read("D", "message_field", 1, uint64(abi.FieldKind))
	read("\x00\xff\xfe\r\n\x80", "message_body", 0)
	read("", "message_body", 1)
	read("1", "message_property", 0, 2000, 1)
	read("\x01\x00\x00\x00a\x01\x00\x00\x001\x01\x00\x00\x00b\x01\x00\x00\x002", "message_properties", 0)
	read("", "message_properties", 1)
	read("10", "state_get", 2004, 4)
	read("gear=4", "config", 2009, 5)
	read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "traceparent")
}

func TestNumbers(t *testing.T) {
	p := newProxy(t, Options{}, dialogInvocation())
	if n := p.call("message_count"); n != 2 {
		t.Errorf("message_count is %d, want 2", n)
	}
	if n := p.call("now"); n != instant.UnixNano() {
		t.Errorf("now is %d, want %d", n, instant.UnixNano())
	}
	for _, c := range []struct {
		index  uint64
		number uint32
		want   int64
	}{
		{0, abi.NumberSequence, 4711},
		{0, abi.NumberMessageSequence, 3},
		{0, abi.NumberPriority, 8},
		{0, abi.NumberEnqueued, instant.UnixMilli()},
		{0, abi.NumberExpires, 0},
		{1, abi.NumberExpires, instant.UnixMilli()},
		{0, abi.NumberDeliveryCount, 2},
		{0, abi.NumberAttempt, 3},
		{0, abi.NumberRollbacks, 2},
		{0, abi.NumberRetained, 1},
	} {
		p.wipe()
		if n := p.call("message_number", c.index, uint64(c.number), memorySize-8); n != 0 {
			t.Errorf("message_number(%d, %d) returned %d", c.index, c.number, n)
		}
		p.want(memorySize-8, string(binary.LittleEndian.AppendUint64(nil, uint64(c.want))))
	}
}

// TestErrorCodes: what is refused, with which code, and that nothing is written or staged.
func TestErrorCodes(t *testing.T) {
	dialog := newProxy(t, Options{}, dialogInvocation())
	alone := newProxy(t, Options{}, invocation(plain("x")))
	granted := newProxy(t, Options{Capabilities: Capabilities()}, dialogInvocation())
	const bad, name, none = 100, 200, 0 // offsets: no UTF-8, "name", nothing
	for _, c := range []struct {
		p    *proxy
		name string
		args []uint64
		want abi.Errno
	}{
		{dialog, "message_field", []uint64{2, 1, 0, 0}, abi.ErrIndex},
		{dialog, "message_field", []uint64{1 << 31, 1, 0, 0}, abi.ErrIndex},
		{dialog, "message_field", []uint64{0, 0, 0, 0}, abi.ErrField},
		{dialog, "message_field", []uint64{0, 13, 0, 0}, abi.ErrField},
		{dialog, "message_field", []uint64{uint64(abi.FirstSeen), 1, 0, 0}, abi.ErrIndex},
		{dialog, "message_number", []uint64{2, 1, 0}, abi.ErrIndex},
		{dialog, "message_number", []uint64{0, 10, 0}, abi.ErrField},
		{dialog, "message_body", []uint64{2, 0, 0}, abi.ErrIndex},
		{dialog, "message_properties", []uint64{2, 0, 0}, abi.ErrIndex},
		{dialog, "message_property", []uint64{2, name, 4, 0, 0}, abi.ErrIndex},
		{dialog, "message_property", []uint64{0, name, 4, 0, 0}, abi.ErrNotFound},
		{dialog, "config", []uint64{name, 4, 0, 0}, abi.ErrNotFound},
		{dialog, "state_get", []uint64{name, 4, 0, 0}, abi.ErrNotFound},
		{dialog, "state_put", []uint64{name, 0, 0, 0}, abi.ErrInvalid},
		{dialog, "state_put", []uint64{bad, 2, 0, 0}, abi.ErrInvalid},
		{dialog, "state_delete", []uint64{bad, 2}, abi.ErrInvalid},
		{alone, "state_get", []uint64{name, 4, 0, 0}, abi.ErrNoState},
		{alone, "state_put", []uint64{name, 4, 0, 0}, abi.ErrNoState},
		{alone, "state_delete", []uint64{name, 4}, abi.ErrNoState},
		{alone, "dialog_send", []uint64{none, 0, 0, 0, 0, 0, 0, 0}, abi.ErrUnknownConversation},
		{alone, "dialog_end", []uint64{none, 0}, abi.ErrUnknownConversation},
		{dialog, "dialog_send", []uint64{bad, 2, 0, 0, 0, 0, 0, 0}, abi.ErrInvalid},
		{dialog, "dialog_send", []uint64{none, 0, 0, 0, name, 4, 0, 0}, abi.ErrInvalid},
		{dialog, "dialog_end_error", []uint64{none, 0, 0, name, 4}, abi.ErrInvalid},
		{dialog, "dialog_end_error", []uint64{none, 0, 127, name, 0}, abi.ErrInvalid},
		{dialog, "dialog_end_error", []uint64{none, 0, 1<<32 - 5, name, 4}, abi.ErrInvalid},
		{dialog, "dialog_begin", []uint64{bad, 2, name, 4, 0, 0, 0, 0, 0, 0, 64}, abi.ErrInvalid},
		{dialog, "dialog_begin", []uint64{name, 4, name, 4, 0, 0, 0, 0, 1<<64 - 2, 0, 64}, abi.ErrInvalid},
		{alone, "dialog_move", []uint64{none, 0, name, 4}, abi.ErrUnknownConversation},
		{dialog, "dialog_move", []uint64{none, 0, bad, 2}, abi.ErrInvalid},
		{alone, "timer_after", []uint64{none, 0, 1000}, abi.ErrUnknownConversation},
		{dialog, "timer_after", []uint64{none, 0, 1<<64 - 1}, abi.ErrInvalid},
		{alone, "timer_cron", []uint64{none, 0, name, 4, 0, 0}, abi.ErrUnknownConversation},
		{dialog, "timer_cron", []uint64{none, 0, name, 0, 0, 0}, abi.ErrInvalid},
		{alone, "timer_cancel", []uint64{none, 0}, abi.ErrUnknownConversation},
		{dialog, "dialog_retained", []uint64{name, 4}, abi.ErrUnknownConversation}, // not of this unit
		{dialog, "dialog_retained", []uint64{none, 0}, abi.ErrNotAvailable},        // no Retainer
		{alone, "dialog_retained", []uint64{none, 0}, abi.ErrUnknownConversation},
		{dialog, "queue_peek", []uint64{none, 0, 0, 1}, abi.ErrInvalid},
		{dialog, "queue_peek", []uint64{name, 4, 1<<64 - 1, 1}, abi.ErrInvalid},
		{dialog, "queue_peek", []uint64{name, 4, 0, 0}, abi.ErrInvalid},
		{dialog, "queue_peek", []uint64{name, 4, 0, maxPeek + 1}, abi.ErrInvalid},
		{dialog, "queue_peek", []uint64{name, 4, 0, 1}, abi.ErrDenied},
		{granted, "queue_peek", []uint64{name, 4, 0, 1}, abi.ErrNotAvailable}, // no Peeker
		{dialog, "conversation_end", []uint64{name, 4, name, 4, 127, name, 4}, abi.ErrDenied},
		{granted, "conversation_end", []uint64{none, 0, name, 4, 127, name, 4}, abi.ErrInvalid},
		{granted, "conversation_end", []uint64{name, 4, none, 0, 127, name, 4}, abi.ErrInvalid},
		{granted, "conversation_end", []uint64{name, 4, name, 4, 0, name, 4}, abi.ErrInvalid},
		{granted, "conversation_end", []uint64{name, 4, name, 4, 127, none, 0}, abi.ErrInvalid},
		{granted, "conversation_end", []uint64{name, 4, name, 4, 127, bad, 2}, abi.ErrInvalid},
		{dialog, "queue_enable", []uint64{name, 4, 0}, abi.ErrDenied},
		{granted, "queue_enable", []uint64{none, 0, 0}, abi.ErrInvalid},
		{granted, "queue_enable", []uint64{name, 4, 1<<64 - 1}, abi.ErrInvalid},
		{dialog, "topic_publish", make([]uint64, 14), abi.ErrNotAvailable},
		{dialog, "message_dead_letter", []uint64{2, name, 4, name, 4}, abi.ErrIndex},
		{dialog, "message_dead_letter", []uint64{uint64(abi.FirstSeen), name, 4, name, 4}, abi.ErrIndex},
		{dialog, "message_dead_letter", []uint64{1<<32 - 1, name, 4, name, 4}, abi.ErrIndex},
		{dialog, "message_dead_letter", []uint64{2, memorySize, 1, name, 4}, abi.ErrFault}, // it wins
		{dialog, "message_defer", []uint64{0}, abi.ErrNotAvailable},
		{dialog, "queue_send", []uint64{name, 4, bad, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, abi.ErrInvalid},
		{dialog, "queue_send", []uint64{name, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1<<64 - 1, 0}, abi.ErrInvalid},
		{dialog, "queue_send", []uint64{name, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1<<64 - 1}, abi.ErrInvalid},
		{dialog, "retry_after", []uint64{1<<64 - 1}, abi.ErrInvalid},
		{dialog, "random", []uint64{0, maxRandom + 1}, abi.ErrFault},
		{dialog, "span_end", []uint64{0}, abi.ErrIndex},
		{dialog, "span_end", []uint64{1}, abi.ErrIndex},
	} {
		c.p.wipe()
		c.p.put(bad, "\xff\xfe")
		c.p.put(name, "name")
		if n := c.p.call(c.name, c.args...); n != int64(c.want) {
			t.Errorf("%s%v returned %d, want %s", c.name, c.args, n, c.want.Name())
		}
		c.p.want(bad, "\xff\xfe")
		c.p.want(name, "name")
		if len(c.p.in.effects) > 0 {
			t.Errorf("%s%v staged %+v", c.name, c.args, c.p.in.effects)
		}
	}
}

// TestBrokerErrorCodes: each error the broker may give at staging time has its code.
func TestBrokerErrorCodes(t *testing.T) {
	inv := dialogInvocation()
	var refusal error
	inv.Effects = effects{check: func(context.Context, *broker.Effect) error { return refusal }}
	p := newProxy(t, Options{}, inv)
	for _, c := range []struct {
		err  error
		want abi.Errno
	}{
		{broker.ErrUnknownConversation, abi.ErrUnknownConversation},
		{broker.ErrForeignConversation, abi.ErrUnknownConversation},
		{broker.ErrConversationEnded, abi.ErrConversationState},
		{broker.ErrUnknownEntity.With("triaged"), abi.ErrUnknownQueue},
		{broker.ErrUnknownService, abi.ErrUnknownService},
		{broker.ErrUnknownContract, abi.ErrUnknownContract},
		{broker.ErrTypeNotInContract, abi.ErrType},
		{broker.ErrTargetOnly, abi.ErrType},
		{broker.ErrInitiatorOnly, abi.ErrType},
		{broker.ErrMessageSize, abi.ErrTooLarge},
		{broker.ErrName, abi.ErrInvalid},
		{broker.ErrQuota, abi.ErrRefused},
	} {
		refusal = c.err
		if n := p.call("dialog_send", make([]uint64, 8)...); n != int64(c.want) {
			t.Errorf("%v gave %d, want %s", c.err, n, c.want.Name())
		}
	}
	if len(p.in.effects) != 0 {
		t.Errorf("staged %+v", p.in.effects)
	}
}

// TestStaged: each function stages exactly what it was given, as a copy.
func TestStaged(t *testing.T) {
	p := newProxy(t, Options{Capabilities: Capabilities()}, dialogInvocation())
	list := string(abi.AppendProperty(nil, "k", "v"))
	p.wipe()
	p.put(0, "c-2|//t|id-9|ses|bodybytes|queue|from|to|con|key|value|text|")
	p.put(100, "@daily|UTC|g-9")
	p.put(200, list)
	calls := []struct {
		name string
		args []uint64
		want int64
	}{
		{"dialog_send", []uint64{0, 3, 4, 3, 200, uint64(len(list)), 17, 9}, 0},
		{"queue_send", []uint64{27, 5, 4, 3, 8, 4, 13, 3, 200, uint64(len(list)), 17, 9, 1500, 60000}, 0},
		{"dialog_begin", []uint64{33, 4, 38, 2, 41, 3, 0, 0, 1<<64 - 1, 300, 36}, 36},
		{"dialog_end_error", []uint64{0, 3, 127, 55, 4}, 0},
		{"dialog_end", []uint64{0, 0}, 0},
		{"state_put", []uint64{45, 3, 49, 5}, 0},
		{"state_delete", []uint64{45, 3}, 0},
		{"dialog_move", []uint64{0, 3, 111, 3}, 0},
		{"timer_after", []uint64{0, 0, 1500}, 0},
		{"timer_after", []uint64{0, 3, 0}, 0},
		{"timer_cron", []uint64{0, 3, 100, 6, 107, 3}, 0},
		{"timer_cancel", []uint64{0, 3}, 0},
		{"conversation_end", []uint64{27, 5, 0, 3, 127, 55, 4}, 0},
		{"queue_enable", []uint64{27, 5, 7}, 0},
		{"message_dead_letter", []uint64{1, 45, 3, 55, 4}, 0},
		{"message_dead_letter", []uint64{0, 45, 3, 0, 0}, 0},
		{"message_dead_letter", []uint64{1, 49, 5, 0, 3}, 0}, // the last one counts
	}
	for _, c := range calls {
		if n := p.call(c.name, c.args...); n != c.want {
			t.Errorf("%s returned %d, want %d", c.name, n, c.want)
		}
	}
	p.want(300, newHandle)
	p.wipe() // what is staged is no view of the guest's memory
	props, body := map[string]string{"k": "v"}, []byte("bodybytes")
	want := []broker.Effect{
		{Kind: broker.EffectSend, Conversation: "c-2", Message: broker.Outgoing{Type: "//t", Properties: props, Body: body}},
		{Kind: broker.EffectSendTo, Queue: "queue", Message: broker.Outgoing{
			Type: "//t", MessageID: "id-9", SessionID: "ses", Properties: props, Body: body,
			Delay: 1500 * time.Millisecond, TTL: time.Minute,
		}},
		{Kind: broker.EffectBegin, Conversation: newHandle, From: "from", To: "to", Contract: "con", Lifetime: broker.Forever},
		{Kind: broker.EffectEnd, Conversation: "c-2", Code: 127, Text: "text"},
		{Kind: broker.EffectEnd, Conversation: "c-1"},
		{Kind: broker.EffectPutState, Key: "key", Value: []byte("value")},
		{Kind: broker.EffectDeleteState, Key: "key"},
		{Kind: broker.EffectMove, Conversation: "c-2", Group: "g-9"},
		{Kind: broker.EffectTimer, Conversation: "c-1", After: 1500 * time.Millisecond},
		{Kind: broker.EffectTimer, Conversation: "c-2"},
		{Kind: broker.EffectTimer, Conversation: "c-2", Cron: "@daily", Zone: "UTC"},
		{Kind: broker.EffectCancelTimer, Conversation: "c-2"},
		{Kind: broker.EffectCommandEnd, Queue: "queue", Conversation: "c-2", Code: 127, Text: "text"},
		{Kind: broker.EffectCommandEnable, Queue: "queue", Epoch: 7},
		{Kind: broker.EffectDeadLetter, Index: 1, Reason: "value", Text: "c-2"},
		{Kind: broker.EffectDeadLetter, Index: 0, Reason: "key"},
	}
	wantEffects(t, p.in.effects, want)
}

// TestStateSeesItsOwnWrites within one attempt.
func TestStateSeesItsOwnWrites(t *testing.T) {
	p := newProxy(t, Options{}, dialogInvocation())
	p.put(0, "left")
	p.put(10, "9")
	get := func() (string, int64) {
		n := p.call("state_get", 0, 4, 100, 10)
		b, _ := p.memory().Read(100, uint32(max(n, 0)))
		return string(b), n
	}
	if v, _ := get(); v != "10" {
		t.Errorf("before: %q", v)
	}
	p.call("state_put", 0, 4, 10, 1)
	if v, _ := get(); v != "9" {
		t.Errorf("after put: %q", v)
	}
	p.call("state_delete", 0, 4)
	if _, n := get(); n != int64(abi.ErrNotFound) {
		t.Errorf("after delete: %d", n)
	}
	p.call("state_put", 0, 4, 0, 0)
	if v, n := get(); v != "" || n != 0 {
		t.Errorf("an empty value: %q, %d", v, n)
	}
}

// TestTexts: texts for people are made valid, kept apart and bounded.
func TestTexts(t *testing.T) {
	p := newProxy(t, Options{}, dialogInvocation())
	p.put(0, "bad \xff\xfe text")
	p.call("fail", 0, 11)
	p.call("dead_letter", 0, 3, 0, 11)
	p.call("log", 8, 0, 11)
	if n := p.call("span_start", 0, 3); n != 1 {
		t.Errorf("span_start returned %d", n)
	}
	if n := p.call("span_end", 1); n != 0 {
		t.Errorf("span_end returned %d", n)
	}
	const want = "bad \uFFFD text"
	in := p.in
	if in.failText != want || in.reason != "bad" || in.description != want {
		t.Errorf("got %q, %q, %q", in.failText, in.reason, in.description)
	}
	logged := in.logs.take(instant)
	if len(logged) != 1 || logged[0].Text != want || logged[0].Level != 8 || logged[0].Stream != "log" {
		t.Errorf("logged %+v", logged)
	}
	if s := in.closeSpans(); len(s) != 1 || s[0].Name != "bad" || !s[0].End.Equal(instant) {
		t.Errorf("spans %+v", s)
	}
}

// TestManySpans: spans beyond the bound are opened and closed like others, and not kept.
func TestManySpans(t *testing.T) {
	p := newProxy(t, Options{}, dialogInvocation())
	for i := range int64(200) {
		id := p.call("span_start", 0, 1)
		if id != min(i+1, maxSpans+1) {
			t.Fatalf("span %d has the id %d", i, id)
		}
		if n := p.call("span_end", uint64(id)); n != 0 {
			t.Fatalf("span_end(%d) returned %d", id, n)
		}
	}
	if n := len(p.in.closeSpans()); n != maxSpans {
		t.Errorf("%d spans are kept, want %d", n, maxSpans)
	}
}

// TestRandom: a fixed source gives its bytes, and only into the buffer.
func TestRandom(t *testing.T) {
	p := newProxy(t, Options{}, dialogInvocation())
	p.in.source = strings.NewReader("0123456789")
	p.wipe()
	if n := p.call("random", 500, 4); n != 0 {
		t.Errorf("random returned %d", n)
	}
	p.want(500, "0123")
}
