package guest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"parley/broker"
)

const echo = "../../plugins/examples/echo"

// TestCase13BinaryBody: a handler sees exactly the bytes that were sent, and what it sends is exactly its bytes
// (dlq-binary-body).
func TestCase13BinaryBody(t *testing.T) {
	p := load(t, goGuest(t, echo), Options{})
	m := dialogMessage("\x00\xff\xfe\r\n\x80")
	m.Properties = map[string]string{"k": "\xff"}
	for range 2 { // the second attempt reuses the instance
		r := p.Run(t.Context(), invocation(m))
		wantCommit(t, r)
		out := r.Settlement.Effects[0].Message
		sum := sha256.Sum256(out.Body)
		if got := hex.EncodeToString(sum[:]); got != "c941553e3c5f10e58a21a31eb011614eac184ef80b8f411b806ab7b32d659558" {
			t.Errorf("the handler sent %x, sha256 %s", out.Body, got)
		}
		if out.Properties["k"] != "\xff" {
			t.Errorf("properties %q", out.Properties)
		}
	}
}

// TestCase14Sizes: bodies of 0, 1 and 262144 bytes pass through a handler unchanged (broker-size-limits).
func TestCase14Sizes(t *testing.T) {
	p := load(t, goGuest(t, echo), Options{})
	for _, n := range []int{0, 1, 262144, 1 << 20, 0, 3} {
		body := bytes.Repeat([]byte{0xa5}, n)
		if n > 0 {
			body[n-1] = 0x5a
		}
		m := dialogMessage(string(body))
		r := p.Run(t.Context(), invocation(m))
		wantCommit(t, r)
		if got := r.Settlement.Effects[0].Message.Body; !bytes.Equal(got, body) {
			t.Errorf("%d bytes came out as %d", n, len(got))
		}
	}
}

// TestGoPanic: a panic of a Go handler is a rollback with the panic's text, and costs its instance.
func TestGoPanic(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{})
	wantCommit(t, attemptOf(t, p, "count 1"))
	r := attemptOf(t, p, "panic")
	wantRollback(t, r, broker.ReasonTrap, "unreachable: panic: a verb that panics")
	wantCommit(t, attemptOf(t, p, "count 1"))
}

// TestGoMemoryLimit: a Go handler that allocates beyond its limit is told so.
func TestGoMemoryLimit(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{Limits: Limits{Memory: 32 << 20}})
	wantRollback(t, attemptOf(t, p, "allocate"), broker.ReasonMemoryLimit, "32 MiB")
	wantCommit(t, attemptOf(t, p, "count 1"))
}

// TestGoRecursion: endless recursion of a Go handler ends at a limit.
func TestGoRecursion(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{})
	r := attemptOf(t, p, "recurse")
	switch r.Settlement.FailReason {
	case broker.ReasonMemoryLimit, broker.ReasonStackOverflow, broker.ReasonDeadlineExceeded:
	default:
		t.Errorf("%+v", r.Settlement)
	}
	wantCommit(t, attemptOf(t, p, "count 1"))
}

// TestSDKVerbs: what the SDK offers arrives as what it says.
func TestSDKVerbs(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{Config: map[string]string{"long": strings.Repeat("y", 5000)}})
	inv := dialogInvocation()
	inv.Unit.Messages = inv.Unit.Messages[:1]
	inv.Unit.Messages[0].Body = []byte("everything")
	r := p.Run(t.Context(), inv)
	wantCommit(t, r)
	list := map[string]string{"a": "1", "b": "2"}
	wantEffects(t, r.Settlement.Effects, []broker.Effect{
		{Kind: broker.EffectPutState, Key: "left", Value: []byte("10!")},
		{Kind: broker.EffectDeleteState, Key: "gone"},
		{Kind: broker.EffectBegin, Conversation: newHandle, From: "//shop/Inventory", To: "//shop/Audit", Lifetime: broker.Forever},
		{Kind: broker.EffectSend, Conversation: newHandle, Message: broker.Outgoing{Type: "//shop/Note", Properties: list, Body: []byte("first")}},
		{Kind: broker.EffectEnd, Conversation: newHandle},
		{Kind: broker.EffectEnd, Conversation: "c-1", Code: 127, Text: "enough"},
		{Kind: broker.EffectSendTo, Queue: "triaged", Message: broker.Outgoing{MessageID: "m", SessionID: "s", Delay: 1e9, TTL: 2e9, Body: []byte{}}},
	})
	if len(r.Spans) != 1 || r.Spans[0].Name != "work" || !r.Spans[0].Start.Equal(instant) {
		t.Errorf("spans %+v", r.Spans)
	}
	if lines := of(r.Logs, "log"); len(lines) != 1 || lines[0] != "id-1 s-1 //shop/StockRequest S c-1 g-1 //shop/Inventory //shop/Line //shop/Stock N orders 4711 3 8 2 3 5000 ERR_INVALID 2026-03-08T07:00:00Z 55" {
		t.Errorf("log %q", lines)
	}
}

// TestSDKLooksAndCommands: looks, timers, moves and the granted commands arrive as what they say.
func TestSDKLooksAndCommands(t *testing.T) {
	p := load(t, goGuest(t, "testdata/verbs"), Options{Capabilities: Capabilities(), Peeker: lookout{}, Retainer: lookout{}})
	inv := dialogInvocation()
	inv.Unit.Messages = inv.Unit.Messages[:1]
	inv.Unit.Messages[0].Body = []byte("look")
	r := p.Run(t.Context(), inv)
	wantCommit(t, r)
	wantEffects(t, r.Settlement.Effects, []broker.Effect{
		{Kind: broker.EffectCommandEnd, Queue: "shop", Conversation: "c-7", Code: 127, Text: "gone"},
		{Kind: broker.EffectCommandEnable, Queue: "shop", Epoch: 3},
		{Kind: broker.EffectTimer, Conversation: "c-1", After: 2 * time.Millisecond}, // never early
		{Kind: broker.EffectTimer, Conversation: "c-1", Cron: "@daily", Zone: "Europe/Stockholm"},
		{Kind: broker.EffectCancelTimer, Conversation: "c-1"},
		{Kind: broker.EffectMove, Conversation: "c-1", Group: "g-9"},
	})
	if lines := of(r.Logs, "log"); len(lines) != 1 || lines[0] != "2 108 5 retrying a look id-0=0 id-1=1 id-3=3" {
		t.Errorf("log %q", lines)
	}
}
