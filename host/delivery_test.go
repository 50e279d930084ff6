package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

func TestASlowUnitDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			if inv.Unit.Messages[0].SequenceNumber%50 == 1 {
				return sleeps(20*time.Second)(ctx, inv)
			}
			return sleeps(20*time.Microsecond)(ctx, inv)
		}}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 16}))
		b.send("q", "", 500) // ten of them slow
		time.Sleep(5 * time.Second)
		if got := len(b.done("q")); got < 450 {
			// Units behind a slow one in its own slot wait: at most three for each of the ten.
			t.Logf("%d fast units wait in the windows of slow slots", 490-got)
			if got < 490-10*(windowMax-1) {
				t.Errorf("done while ten slow ones run: got %d, want 490 less those in the same slots", got)
			}
		}
		r.until(time.Minute, "all done", func() bool { return len(b.done("q")) == 500 })
	})
}

func TestWindowFollowsTheSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		var takes atomic.Int64
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			return sleeps(time.Duration(takes.Load()))(ctx, inv)
		}}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 4}))
		for _, c := range []struct {
			takes time.Duration
			want  int
		}{{100 * time.Microsecond, 4}, {900 * time.Microsecond, 2}, {5 * time.Millisecond, 1}, {300 * time.Microsecond, 4}} {
			takes.Store(int64(c.takes))
			before := len(b.done("q"))
			b.send("q", "", 200)
			r.until(time.Minute, "200 more done", func() bool { return len(b.done("q")) == before+200 })
			if got := r.info("q").Window; got != c.want {
				t.Errorf("window at %v: got %d, want %d", c.takes, got, c.want)
			}
		}
	})
}

func TestTurnsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		b.rtt = 200 * time.Microsecond
		f := &fakeRunner{handle: sleeps(5 * time.Microsecond)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 64}))
		b.send("q", "", 20_000)
		r.until(time.Minute, "all done", func() bool { return len(b.done("q")) == 20_000 })
		if got := b.count("turn"); got > 20_000/64 {
			t.Errorf("turns for 20,000 units: got %d, want at least 64 units a turn", got)
		}
	})
}

func TestAnUncertainUnitRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(50 * time.Microsecond)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 2}))
		b.send("q", "", 200)
		r.until(time.Second, "the window is wide", func() bool { return r.info("q").Window == windowMax && len(b.done("q")) == 200 })
		b.mu.Lock()
		for _, i := range []int{3, 40, 41} {
			b.queues["q"].ready = append(b.queues["q"].ready, &fakeMessage{uncertain: true, msg: broker.Message{SequenceNumber: int64(1000 + i)}})
		}
		b.queues["q"].seq = 2000
		b.mu.Unlock()
		b.send("q", "", 100)
		r.until(time.Second, "all done", func() bool { return len(b.done("q")) == 303 })
	}) // the broker finds fault with an uncertain unit that is not alone
}

func TestUncertainUnitsAloneOnAQueueAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: &fakeRunner{}, MaxReaders: 2})(c)
			c.Sweep = time.Hour
		})
		r.host.monitors["q"].pace.add(time.Microsecond)
		b.mu.Lock()
		for i := range 3 {
			b.queues["q"].ready = append(b.queues["q"].ready, &fakeMessage{uncertain: true, msg: broker.Message{SequenceNumber: int64(i)}})
		}
		b.wakeLocked(b.queues["q"])
		b.mu.Unlock()
		r.until(time.Second, "all done", func() bool { return len(b.done("q")) == 3 })
	})
}

func TestLongHandlersKeepTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{handle: sleeps(5 * time.Minute)}}))
		b.send("q", "", 4)
		r.until(6*time.Minute, "all done", func() bool { return len(b.done("q")) == 4 })
		if got := r.info("q").LeaseLosses; got != 0 {
			t.Errorf("lease losses: got %d, want 0", got)
		}
		if got := b.count("renew"); got == 0 || got > 200 {
			t.Errorf("renewals in 5 minutes by two readers: got %d, want about 2 × 75", got)
		}
	})
}

func TestLostLeaseStopsGuestsAndReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		var cause error
		first := true
		f := &fakeRunner{handle: func(ctx context.Context, _ *Invocation) broker.Settlement {
			if !first {
				return broker.Settlement{}
			}
			first = false
			<-ctx.Done()
			cause = context.Cause(ctx)
			return broker.Settlement{} // it believes it has succeeded
		}}
		o := &spyObserver{}
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: f, MaxReaders: 1})(c)
			c.Observer = o
		})
		b.send("q", "", 1)
		synctest.Wait()
		b.mu.Lock()
		b.fail = func(op, _ string) error { // a partition
			if op == "renew" || op == "turn" {
				return errors.New("i/o timeout")
			}
			return nil
		}
		b.mu.Unlock()
		time.Sleep(3 * broker.DefaultLease)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		r.until(10*time.Second, "the next reader has done it", func() bool { return len(b.done("q")) == 1 })
		if got := r.info("q").LeaseLosses; got != 1 {
			t.Errorf("lease losses: got %d, want 1", got)
		}
		if !errors.Is(cause, broker.ErrLockLost) {
			t.Errorf("cause of the guest's end: got %v, want ErrLockLost", cause)
		}
		r.halt()
		want := []string{"attempt 1", "attempt 2", "died q-1", "lease lost 1", "ran", "ran", "settled 0", "settled 6"}
		if got := slices.Sorted(slices.Values(o.all())); !slices.Equal(got, want) {
			t.Errorf("observed: got %v, want %v", got, want)
		}
	})
}

func TestErrorsBackOffAndSayLittle(t *testing.T) { // field case 1
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{}
		var at []time.Time
		r := start(t, b, one(PluginConfig{Runner: f}))
		b.mu.Lock()
		b.fail = func(op, _ string) error {
			if op == "open" {
				at = append(at, time.Now())
				return broker.ErrUnreachable
			}
			return nil
		}
		b.mu.Unlock()
		b.send("q", "", 1)
		time.Sleep(30 * time.Second)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d < backoffFirst {
				t.Errorf("pause %d: got %v, want at least %v", i, d, backoffFirst)
			}
		}
		if got := r.log.count("a reader could not be opened"); got == 0 || got > 31 {
			t.Errorf("lines in 30 s: got %d, want 1 to 31", got)
		}
		if got := r.info("q").LastError; got == "" {
			t.Error("the monitor shows no error")
		}
		r.until(5*time.Second, "delivery is back", func() bool { return len(b.done("q")) == 1 })
		if got := r.info("q").LastError; got != "" {
			t.Errorf("error after recovery: got %q, want none", got)
		}
	})
}

func TestErrorsInTurnsReopen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(time.Millisecond)}
		n := 0
		b.fail = func(op, _ string) error {
			if op != "turn" {
				return nil
			}
			if n++; n%7 == 3 {
				return errors.New("EOF")
			}
			return nil
		}
		r := start(t, b, one(PluginConfig{Runner: f}))
		b.send("q", "", 100)
		r.until(10*time.Minute, "all done", func() bool { return len(b.done("q")) == 100 })
	})
}

func TestAMissingQueueIsRestored(t *testing.T) { // field case 1: a flush takes the definitions
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		restored := 0
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: &fakeRunner{}})(c)
			c.Restore = func(context.Context) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				restored++
				b.queues["q"].gone = false
				return nil
			}
		})
		time.Sleep(time.Minute)
		b.mu.Lock()
		b.queues["q"].gone, b.queues["q"].asleep = true, false
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		b.send("q", "", 1)
		r.until(5*time.Second, "the message is done", func() bool { return len(b.done("q")) == 1 })
		if restored != 1 {
			t.Errorf("restored: got %d times, want 1", restored)
		}
	})
}

func TestRunnerIsSwitchedBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		old := &fakeRunner{handle: sleeps(time.Second)}
		r := start(t, b, one(PluginConfig{Runner: old, MaxReaders: 1}))
		b.send("q", "", 2)
		time.Sleep(100 * time.Millisecond)
		next := &fakeRunner{}
		got, err := r.host.SetRunner("q", next)
		if err != nil || got != Runner(old) {
			t.Fatalf("SetRunner: got %v, %v; want the old runner", got, err)
		}
		r.until(3*time.Second, "both done", func() bool { return len(b.done("q")) == 2 })
		if o, n := old.runs.Load(), next.runs.Load(); o != 1 || n != 1 {
			t.Errorf("runs of old and new: got %d and %d, want 1 and 1", o, n)
		}
	})
}

func TestOrderOfAGroupSurvivesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		b.rtt = 150 * time.Microsecond
		var mu sync.Mutex
		seen := make(map[string][]int64)
		n := 0
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			mu.Lock()
			n++
			fails, takes := n%13 == 0, time.Duration(n%5)*100*time.Microsecond
			mu.Unlock()
			if !sleep(ctx, takes) || fails {
				return broker.Settlement{Verdict: broker.VerdictRollback, FailReason: broker.ReasonTrap}
			}
			mu.Lock()
			defer mu.Unlock()
			seen[inv.Unit.Group] = append(seen[inv.Unit.Group], inv.Unit.Messages[0].SequenceNumber)
			return broker.Settlement{}
		}}
		hosts := make([]*running, 2)
		for i := range hosts {
			hosts[i] = start(t, b, one(PluginConfig{Runner: f, MaxReaders: 24}))
		}
		for i := range 2000 {
			b.send("q", fmt.Sprint("g", i%20), 1)
		}
		hosts[0].until(5*time.Minute, "all done", func() bool { return len(b.done("q")) == 2000 })
		for g, seqs := range seen {
			if !slices.IsSorted(seqs) {
				t.Errorf("group %s was handled out of order: %v", g, seqs)
			}
		}
	})
}

func TestObservedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		o := &spyObserver{}
		n := 0
		f := &fakeRunner{handle: func(_ context.Context, inv *Invocation) broker.Settlement {
			if inv.Traceparent != fmt.Sprint("tp-", inv.Attempt) {
				t.Errorf("traceparent: got %q", inv.Traceparent)
			}
			if n++; n == 1 {
				return broker.Settlement{Verdict: broker.VerdictRollback, FailReason: broker.ReasonTrap}
			}
			return broker.Settlement{}
		}}
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: f})(c)
			c.Observer = o
		})
		b.send("q", "", 1)
		r.until(time.Second, "done", func() bool { return len(b.done("q")) == 1 })
		r.halt()
		want := []string{"attempt 1", "ran", "settled 1", "attempt 2", "ran", "settled 0"}
		if got := o.all(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestAnEndThatTheHandlerLeftIsDone(t *testing.T) { // decisions, Dialogs
	b := newFakeBroker("q")
	h, err := New(Config{Readers: b, Waker: b, Plugins: []PluginConfig{{Name: "p", Queue: "q", Runner: &fakeRunner{}}}})
	if err != nil {
		t.Fatal(err)
	}
	rs := newRuns(h.monitors["q"], "r", 1)
	for _, on := range []bool{true, false} {
		u := &broker.Unit{AutoEnd: on, Messages: []broker.Message{{Kind: broker.KindEndDialog, Conversation: "c"}}}
		got := rs.run(t.Context(), 0, u).settlement.Effects
		if on != (len(got) == 1 && got[0].Kind == broker.EffectEnd && got[0].Conversation == "c") {
			t.Errorf("auto end %v: got effects %v", on, got)
		}
	}
}

func TestUnobservedAttemptsAllocateNothing(t *testing.T) {
	b := newFakeBroker("q")
	h, err := New(Config{Readers: b, Waker: b, Plugins: []PluginConfig{{Name: "p", Queue: "q", Runner: &fakeRunner{}}}})
	if err != nil {
		t.Fatal(err)
	}
	rs := newRuns(h.monitors["q"], "r", 1)
	u := &broker.Unit{Messages: make([]broker.Message, 1)}
	ctx := context.Background()
	if got := testing.AllocsPerRun(100, func() { rs.run(ctx, 0, u) }); got != 0 {
		t.Errorf("allocations of an attempt without observer: got %v, want 0", got)
	}
}

// spyObserver records what it is told.
type spyObserver struct {
	mu     sync.Mutex // guards events
	events []string
}

func (o *spyObserver) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, fmt.Sprintf(format, args...))
}

func (o *spyObserver) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

func (o *spyObserver) Attempt(a *Attempt) AttemptSpan {
	o.say("attempt %d", a.Number)
	return &spySpan{o: o, tp: fmt.Sprint("tp-", a.Number)}
}
func (o *spyObserver) Died(d *broker.DeadAttempt)       { o.say("died %s", d.Message.MessageID) }
func (o *spyObserver) LeaseLost(_, _ string, units int) { o.say("lease lost %d", units) }

type spySpan struct {
	o  *spyObserver
	tp string
}

func (s *spySpan) Traceparent() string { return s.tp }
func (s *spySpan) Ran(*Result)         { s.o.say("ran") }
func (s *spySpan) Settled(e Settled)   { s.o.say("settled %d", e.Consequence) }
