package guest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/host"
)

// wantFault checks that an attempt gave its unit back uncounted, because of fault and for a reason that holds text.
func wantFault(t *testing.T, what string, r host.Result, fault error, text string) {
	t.Helper()
	s := r.Settlement
	if s.Verdict != broker.VerdictRelease || len(s.Effects) != 0 || s.FailReason != "" {
		t.Errorf("%s: got verdict %d, %q with %d effects; want a release", what, s.Verdict, s.FailReason, len(s.Effects))
	}
	if !errors.Is(r.Fault, fault) || !strings.Contains(r.Fault.Error(), text) {
		t.Errorf("%s: got fault %v; want %v with %q", what, r.Fault, fault, text)
	}
}

// at is an invocation at that nanosecond of 1970.
func at(ns int64, messages ...broker.Message) *host.Invocation {
	inv := invocation(messages...)
	inv.Now = func() time.Time { return time.Unix(0, ns) }
	return inv
}

// TestWhatFailsBeforeTheHandlerCountsNothing, in both modes of instances and for a command; the next attempt runs again when the
// cause has gone.
func TestWhatFailsBeforeTheHandlerCountsNothing(t *testing.T) {
	limits := Limits{Time: 300 * time.Millisecond, Memory: 1 << 20}
	reasons := []string{"unreachable", "DeadlineExceeded", "exits with code 0", "exit code 3", "stack overflow", "MemoryLimitExceeded"}
	ofStart := slices.Clone(reasons)
	ofStart[4] = "" // a start section ends by its time or by its stack, whichever comes first
	for _, c := range []struct {
		name    string
		wasm    []byte
		opts    Options
		reasons []string
	}{
		{"pooled", wat(t, "moody"), Options{MaxInvocations: 1, Limits: limits}, reasons},
		{"per attempt", wat(t, "moody"), Options{Instances: PerAttempt, Limits: limits}, reasons},
		{"command", wat(t, "moodycommand"), Options{Limits: limits}, ofStart},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, c.wasm, c.opts)
			p.Trim(0)
			for ns, text := range c.reasons {
				inv := at(int64(ns), plain("m"))
				r := p.Run(t.Context(), inv)
				wantFault(t, text, r, host.ErrNotStarted, text)
				if r.Settlement.Unit != inv.Unit {
					t.Error("the settlement is of another unit")
				}
			}
			if r := p.Run(t.Context(), at(100, plain("m"))); r.Settlement.Verdict != broker.VerdictCommit || r.Fault != nil {
				t.Errorf("when it starts again: %+v, fault %v", r.Settlement, r.Fault)
			}
		})
	}
}

// TestAStartThatTheHostEndsIsNoFault: a drain says nothing about the plugin.
func TestAStartThatTheHostEndsIsNoFault(t *testing.T) {
	p := load(t, wat(t, "moody"), Options{Instances: PerAttempt})
	ctx, cancel := context.WithCancel(t.Context())
	inv := at(1, plain("m")) // would start for ever
	asked := 0
	inv.Now = func() time.Time {
		if asked++; asked == 2 {
			cancel()
		}
		return time.Unix(0, 1)
	}
	if r := p.Run(ctx, inv); r.Settlement.Verdict != broker.VerdictRelease || r.Fault != nil {
		t.Errorf("got %+v, fault %v", r.Settlement, r.Fault)
	}
}

// TestTheTimeOfAStartIsNotTheHandlers: a handler whose instance took most of the limit to start has all of it still.
func TestTheTimeOfAStartIsNotTheHandlers(t *testing.T) {
	p := load(t, wat(t, "moody"), Options{Instances: PerAttempt, Limits: Limits{Time: 500 * time.Millisecond}})
	inv := invocation(plain("m"))
	slow := true
	inv.Now = func() time.Time {
		if slow { // the first look at the clock, in _initialize
			slow = false
			for end := mono() + int64(400*time.Millisecond); mono() < end; {
			}
		}
		return time.Unix(1, 0)
	}
	r := p.Run(t.Context(), inv)
	if r.Settlement.Verdict != broker.VerdictCommit || r.Elapsed > 200*time.Millisecond {
		t.Errorf("got %+v after %v", r.Settlement, r.Elapsed)
	}
}

// unanswered are errors of a broker that said nothing.
var unanswered = []error{
	broker.ErrUnreachable.With("no answer"), broker.ErrCorrupt, context.DeadlineExceeded, context.Canceled, errors.New("connection reset by peer"),
}

// TestABrokerThatSaysNothingStopsTheGuest in every function that asks it: there is no code the guest could go on with.
func TestABrokerThatSaysNothingStopsTheGuest(t *testing.T) {
	for _, err := range unanswered {
		inv := dialogInvocation()
		inv.Effects = effects{check: func(context.Context, *broker.Effect) error { return err }}
		look := lookout{err: err}
		for name, args := range map[string][]uint64{
			"dialog_send":      make([]uint64, 8),
			"dialog_begin":     {0, 1, 0, 1, 0, 0, 0, 0, 0, 100, 36},
			"dialog_end":       {0, 0},
			"dialog_end_error": {0, 0, 5, 0, 1},
			"dialog_move":      {0, 0, 0, 1},
			"timer_after":      {0, 0, 1},
			"timer_cron":       {0, 0, 0, 1, 0, 0},
			"timer_cancel":     {0, 0},
			"state_put":        {0, 1, 0, 1},
			"state_delete":     {0, 1},
			"queue_send":       append([]uint64{0, 1}, make([]uint64, 12)...),
			"conversation_end": {0, 1, 0, 1, 5, 0, 1},
			"queue_enable":     {0, 1, 3},
			"queue_peek":       {0, 1, 0, 1},
			"dialog_retained":  {0, 0},
		} {
			p := newProxy(t, Options{Capabilities: Capabilities(), Peeker: look, Retainer: look}, inv)
			p.put(0, "x")
			got, gerr := p.in.module.ExportedFunction(name).Call(&p.in.call, args...)
			if !errors.Is(gerr, errNoAnswer) {
				t.Errorf("%v: %s returned %d, %v", err, name, got, gerr)
			}
			if len(p.in.effects) != 0 {
				t.Errorf("%v: %s staged %+v", err, name, p.in.effects)
			}
		}
	}
}

// TestNoGuestMakesSomethingOfSilence: not one that passes the error on, not one that ignores it and would commit, and not a command whose reply
// cannot be checked.
func TestNoGuestMakesSomethingOfSilence(t *testing.T) {
	for _, err := range unanswered {
		p := load(t, goGuest(t, "testdata/verbs"), Options{Capabilities: Capabilities(), Peeker: lookout{err: err}})
		for _, body := range []string{"peek", "peek quietly"} {
			wantFault(t, body, attemptOf(t, p, body), host.ErrNoAnswer, err.Error())
		}
		c := loadCommand(t, Options{})
		inv := invocation(dialogMessage("first"), dialogMessage("second"))
		asked := 0
		inv.Effects = effects{check: func(context.Context, *broker.Effect) error {
			if asked++; asked == 2 {
				return err
			}
			return nil
		}}
		wantFault(t, "a command", c.Run(t.Context(), inv), host.ErrNoAnswer, err.Error())
	}
}

// TestTimeThatTheBrokerTookIsNotTheHandlers: a handler that reaches its limit because the broker was late is not charged; one that
// asks promptly answered questions for ever is.
func TestTimeThatTheBrokerTookIsNotTheHandlers(t *testing.T) {
	limits := Limits{Time: 400 * time.Millisecond, HostCalls: 1 << 30}
	late := load(t, goGuest(t, "testdata/verbs"), Options{Capabilities: Capabilities(), Peeker: slowly(350 * time.Millisecond), Limits: limits})
	wantFault(t, "late", attemptOf(t, late, "peek for ever"), host.ErrNoAnswer, "within its time limit of 400ms")
	prompt := load(t, goGuest(t, "testdata/verbs"), Options{Capabilities: Capabilities(), Peeker: slowly(time.Millisecond), Limits: limits})
	wantRollback(t, attemptOf(t, prompt, "peek for ever"), broker.ReasonDeadlineExceeded, "400ms")
}

// slowly is a broker that takes so long for a look, whatever the guest's time.
type slowly time.Duration

func (s slowly) Peek(context.Context, string, int64, int) ([]broker.Message, error) {
	<-time.After(time.Duration(s))
	return nil, nil
}
