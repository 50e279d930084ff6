package guest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/host"
)

// attemptOf runs one attempt of the plugin at a plain message with that body.
func attemptOf(t testing.TB, p *Plugin, body string) host.Result {
	t.Helper()
	return p.Run(t.Context(), invocation(plain(body)))
}

func wantCommit(t testing.TB, r host.Result) {
	t.Helper()
	if r.Settlement.Verdict != broker.VerdictCommit {
		t.Fatalf("got verdict %d (%s: %s), want a commit", r.Settlement.Verdict, r.Settlement.FailReason, r.Settlement.FailText)
	}
}

func wantRollback(t testing.TB, r host.Result, reason, text string) {
	t.Helper()
	s := r.Settlement
	if s.Verdict != broker.VerdictRollback || s.FailReason != reason || !strings.Contains(s.FailText, text) {
		t.Fatalf("got verdict %d, %q, %q; want a rollback with %q, %q", s.Verdict, s.FailReason, s.FailText, reason, text)
	}
	if len(s.Effects) != 0 {
		t.Fatalf("a rollback carries %d effects", len(s.Effects))
	}
}

// soon is how long after its deadline a guest may still run before a test fails: generous, for a busy machine under the
// race detector. How exact the deadlines are is measured by BenchmarkStops and written down in docs/metering.md.
const soon = time.Second

// TestCase33DeadlineEvasion: nothing outlives its deadline of 200 ms, and the next message is handled
// at once (wasm-deadline-evasion).
func TestCase33DeadlineEvasion(t *testing.T) {
	limits := Limits{Time: 200 * time.Millisecond, HostCalls: 1 << 40}
	trouble := load(t, wat(t, "trouble"), Options{Limits: limits})
	tree := load(t, wat(t, "tree"), Options{Limits: limits})
	for _, c := range []struct {
		name   string
		plugin *Plugin
		body   string
		reason string
	}{
		{"A endless loop", trouble, "l", broker.ReasonDeadlineExceeded},
		{"B call tree without a loop", tree, "", broker.ReasonDeadlineExceeded},
		{"C endless recursion", trouble, "r", broker.ReasonStackOverflow},
		{"D host function that waits 1.5 s", trouble, "s", broker.ReasonDeadlineExceeded},
		{"host calls for ever", trouble, "h", broker.ReasonDeadlineExceeded},
		{"names of 60 MiB for ever", trouble, "n", broker.ReasonDeadlineExceeded},
		{"1,024 vectors for ever", trouble, "v", broker.ReasonDeadlineExceeded},
		{"random bytes for ever", trouble, "z", broker.ReasonDeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			r := attemptOf(t, c.plugin, c.body)
			took := time.Since(start)
			reason := c.reason
			if reason == broker.ReasonStackOverflow && r.Settlement.FailReason == broker.ReasonDeadlineExceeded {
				reason = broker.ReasonDeadlineExceeded // the deadline came before the end of the stack
			}
			wantRollback(t, r, reason, "")
			if took > soon {
				t.Errorf("it ran for %v", took)
			}
			start = time.Now()
			wantCommit(t, attemptOf(t, trouble, "b"))
			if took := time.Since(start); took > soon {
				t.Errorf("the message after it took %v", took)
			}
		})
	}
}

// TestBlockingBrokerIsCut: a broker that does not answer is left at the guest's deadline.
func TestBlockingBrokerIsCut(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{Limits: Limits{Time: 100 * time.Millisecond}})
	inv := invocation(plain("e"))
	inv.Effects = effects{check: func(ctx context.Context, _ *broker.Effect) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	start := time.Now()
	wantRollback(t, p.Run(t.Context(), inv), broker.ReasonDeadlineExceeded, "100ms")
	if took := time.Since(start); took > soon {
		t.Errorf("it ran for %v", took)
	}
}

// TestLimits: each limit is a rollback that names it.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		body   string
		limits Limits
		reason string
		text   string
	}{
		{"l", Limits{Fuel: 1_000_000}, broker.ReasonFuelExhausted, "1000000 work units"},
		{"l", Limits{Time: 20 * time.Millisecond}, broker.ReasonDeadlineExceeded, "20ms"},
		{"e", Limits{}, broker.ReasonEffectLimit, "at most 1000 effects"},
		{"e", Limits{Effects: 3}, broker.ReasonEffectLimit, "at most 3 effects"},
		{"E", Limits{}, broker.ReasonEffectLimit, "4194304 bytes"},
		{"h", Limits{}, broker.ReasonHostCallLimit, "at most 100000 host calls"},
		{"g", Limits{}, broker.ReasonMemoryLimit, "limit of 64 MiB"},
		{"r", Limits{}, broker.ReasonStackOverflow, "stack overflow"},
		{"u", Limits{}, broker.ReasonTrap, "unreachable"},
		{"9", Limits{}, broker.ReasonHandlerError, "the handler returned 9"},
		{"3", Limits{}, broker.ReasonHandlerError, "exit code 3"},
	} {
		t.Run(fmt.Sprintf("%s %+v", c.body, c.limits), func(t *testing.T) {
			p := load(t, wat(t, "trouble"), Options{Limits: c.limits})
			wantRollback(t, attemptOf(t, p, c.body), c.reason, c.text)
			wantCommit(t, attemptOf(t, p, "b"))
		})
	}
}

// TestFuelIsExact: the fuel of an attempt is known, and a limit of exactly that much lets it pass.
func TestFuelIsExact(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	used := attemptOf(t, p, "b").Fuel
	if used == 0 {
		t.Fatal("no fuel was counted")
	}
	wantCommit(t, attemptOf(t, load(t, wat(t, "trouble"), Options{Limits: Limits{Fuel: used}}), "b"))
	less := load(t, wat(t, "trouble"), Options{Limits: Limits{Fuel: used - 1}})
	wantRollback(t, attemptOf(t, less, "b"), broker.ReasonFuelExhausted, "")
}

// TestRefusedGrowthMayBeSurvived: only a trap after it is a rollback.
func TestRefusedGrowthMayBeSurvived(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{Limits: Limits{Memory: 8 << 20}})
	wantCommit(t, attemptOf(t, p, "G"))
	wantRollback(t, attemptOf(t, p, "u"), broker.ReasonTrap, "")
	wantRollback(t, attemptOf(t, p, "g"), broker.ReasonMemoryLimit, "limit of 8 MiB")
}

// TestShutdownReleases: an attempt whose context ends is given back uncounted, at once.
func TestShutdownReleases(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	for _, body := range []string{"l", "s"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		start := time.Now()
		r := p.Run(ctx, invocation(plain(body)))
		if r.Settlement.Verdict != broker.VerdictRelease {
			t.Errorf("%s: got %+v", body, r.Settlement)
		}
		if took := time.Since(start); took > soon {
			t.Errorf("%s: it took %v", body, took)
		}
		if r := p.Run(ctx, invocation(plain("b"))); r.Settlement.Verdict != broker.VerdictRelease {
			t.Errorf("an attempt began after the end: %+v", r.Settlement)
		}
	}
	wantCommit(t, attemptOf(t, p, "b"))
}

// TestVerdicts: what a handler answers, and what it said before.
func TestVerdicts(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	r := attemptOf(t, p, "d")
	if s := r.Settlement; s.Verdict != broker.VerdictDeadLetter || s.Reason != "TooBad" || s.Description != "TooBadReason" {
		t.Errorf("dead letter: %+v", s)
	}
	r = attemptOf(t, p, "a")
	if s := r.Settlement; s.Verdict != broker.VerdictRollback || s.Pause != 1500*time.Millisecond {
		t.Errorf("retry_after: %+v", s)
	}
	r = attemptOf(t, p, "9")
	if s := r.Settlement; s.Pause >= 0 {
		t.Errorf("no pause was asked for: %+v", s)
	}
	wantRollback(t, attemptOf(t, p, "c"), broker.ReasonHandlerError, "the handler returned 1")
}

// TestRefusalIsTheErrorText: a handler that says nothing leaves the broker's words as its error.
func TestRefusalIsTheErrorText(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	m := plain("c")
	m.Conversation, m.Group = newHandle, "g1"
	inv := invocation(m)
	inv.Effects = effects{check: func(_ context.Context, e *broker.Effect) error {
		if e.Kind != broker.EffectEnd || e.Conversation != newHandle {
			t.Errorf("staged %+v", e)
		}
		return broker.ErrConversationState
	}}
	wantRollback(t, p.Run(t.Context(), inv), broker.ReasonHandlerError, "8427")
}
