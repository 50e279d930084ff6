package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

// TestSingleDeadLettersAreLogged: a unit that commits and dead-letters one of its messages says which, and why.
func TestSingleDeadLettersAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		bury := func(context.Context, *Invocation) broker.Settlement {
			return broker.Settlement{Effects: []broker.Effect{{Kind: broker.EffectSend}, {Kind: broker.EffectDeadLetter, Reason: "NoRepository", Text: "it is gone"}}}
		}
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{handle: bury}}))
		b.send("q", "", 1)
		r.until(time.Minute, "committed", func() bool { return len(b.done("q")) == 1 })
		r.halt()
		if n := r.log.count("reason=NoRepository description=\"it is gone\""); n != 1 {
			t.Errorf("%d lines say so:\n%s", n, r.log.buf.String())
		}
	})
}
