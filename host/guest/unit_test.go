package guest

import (
	"slices"
	"strings"
	"testing"

	"parley/broker"
	"parley/sdk/abi"
)

// TestNothingActsWithoutAUnit: while an instance starts, and between two attempts, each function that acts in a unit of work answers
// ERR_NO_UNIT and leaves nothing behind; the others answer.
func TestNothingActsWithoutAUnit(t *testing.T) {
	p := newProxy(t, Options{Capabilities: Capabilities(), Peeker: lookout{}, Retainer: lookout{}}, dialogInvocation())
	for name, set := range map[string]func(){
		"while it starts":  func() { p.in.starting = true },
		"between attempts": func() { p.in.starting, p.in.inv = false, nil },
	} {
		set()
		var acts []string
		for _, f := range abi.Functions {
			n := p.call(f.Name, legal(f)...)
			switch {
			case n == int64(abi.ErrNoUnit):
				acts = append(acts, f.Name)
			case strings.HasPrefix(f.Name, "message_") && f.Name != "message_count" && n != int64(abi.ErrIndex):
				t.Errorf("%s: %s answers %d", name, f.Name, n)
			}
		}
		want := []string{
			"dialog_begin", "dialog_send", "dialog_end", "dialog_end_error", "dialog_move", "dialog_retained", "timer_after", "timer_cron",
			"timer_cancel", "state_get", "state_put", "state_delete", "queue_send", "topic_publish", "queue_peek", "conversation_end",
			"queue_enable", "dead_letter", "message_dead_letter", "message_defer", "retry_after",
		}
		if !slices.Equal(acts, want) {
			t.Errorf("%s: ERR_NO_UNIT of %v, want it of %v", name, acts, want)
		}
		if n := p.call("message_count"); n != 0 || len(p.in.effects) > 0 {
			t.Errorf("%s: %d messages, staged %+v", name, n, p.in.effects)
		}
	}
}

// TestRestagedBytes: a dead letter that replaces one of the same message counts its own bytes only, and the limit holds for it.
func TestRestagedBytes(t *testing.T) {
	p := newProxy(t, Options{Limits: Limits{EffectBytes: 100}}, dialogInvocation())
	for range 10 {
		if n := p.call("message_dead_letter", 0, 0, 30, 0, 60); n != 0 {
			t.Fatalf("returned %d", n)
		}
	}
	if len(p.in.effects) != 1 || p.in.effectBytes != 90 {
		t.Errorf("%d effects of %d bytes", len(p.in.effects), p.in.effectBytes)
	}
	_, err := p.in.module.ExportedFunction("message_dead_letter").Call(&p.in.call, 0, 0, 41, 0, 60)
	if err == nil || !strings.Contains(err.Error(), errEffectLimit.Error()) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestLeftoverGoroutine: what a goroutine that the handler of one unit left behind asks for in the next one is refused, in an
// instance that is used again; what starts an instance is refused as well.
func TestLeftoverGoroutine(t *testing.T) {
	p := load(t, goGuest(t, "testdata/leftover"), Options{})
	wantCommit(t, attemptOf(t, p, "leave"))
	r := attemptOf(t, p, "look")
	wantCommit(t, r)
	wantEffects(t, r.Settlement.Effects, []broker.Effect{
		{Kind: broker.EffectSendTo, Queue: "own", Message: broker.Outgoing{Body: []byte("look")}},
	})
	if lines := of(r.Logs, "log"); len(lines) != 1 || lines[0] != "left: ERR_NO_UNIT ERR_NO_UNIT ERR_NO_UNIT 0 messages" {
		t.Errorf("log %q", lines)
	}
}

// TestSDKDeadLettersOfOne: a handler takes single messages out and commits the rest.
func TestSDKDeadLettersOfOne(t *testing.T) {
	p := load(t, goGuest(t, "testdata/leftover"), Options{})
	r := p.Run(t.Context(), invocation(plain("sort"), plain("bad"), plain("good")))
	wantCommit(t, r)
	wantEffects(t, r.Settlement.Effects, []broker.Effect{
		{Kind: broker.EffectDeadLetter, Index: 1, Reason: "Bad", Text: "it is bad"},
		{Kind: broker.EffectSendTo, Queue: "own", Message: broker.Outgoing{Body: []byte("good")}},
	})
}
