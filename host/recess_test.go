package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

// sick is a plugin whose attempts have a fault until it is healed.
type sick struct {
	fault atomic.Pointer[error]
	tries atomic.Int64
	ran   atomic.Int64
}

func newSick(fault error) *sick {
	s := &sick{}
	s.fault.Store(&fault)
	return s
}

func (s *sick) heal() { s.fault.Store(nil) }

func (s *sick) Run(context.Context, *Invocation) Result {
	if f := s.fault.Load(); f != nil {
		s.tries.Add(1)
		return Result{Settlement: broker.Settlement{Verdict: broker.VerdictRelease}, Fault: *f}
	}
	s.ran.Add(1)
	return Result{}
}

func (s *sick) Digest() string              { return "d1" }
func (s *sick) Close(context.Context) error { return nil }

// TestAPluginThatDoesNotStartCountsNothing: its messages wait uncounted and in order, it is tried after 1, 2, 4, … at most 30 s, that is
// said once, and it goes on by itself.
func TestAPluginThatDoesNotStartCountsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		b.queues["q"].limit = 5
		plugin := newSick(fmt.Errorf("%w: Trap: unreachable", ErrNotStarted))
		r := start(t, b, one(PluginConfig{Runner: plugin, MaxReaders: 1}))
		b.send("q", "g", 3)
		begin := time.Now()
		var pauses []time.Duration
		for tries, last := int64(1), time.Duration(0); tries <= 9; tries++ {
			r.until(time.Minute, "another try", func() bool { return plugin.tries.Load() >= tries })
			pauses = append(pauses, (time.Since(begin) - last).Round(time.Second))
			last = time.Since(begin)
		}
		if got, want := fmt.Sprint(pauses), "[0s 1s 2s 4s 8s 16s 30s 30s 30s]"; got != want {
			t.Errorf("tried after %s, want %s", got, want)
		}
		if n := r.log.count("the plugin cannot handle messages"); n != 1 {
			t.Errorf("said %d times", n)
		}
		if i := r.info("q"); i.Recess != "the plugin does not start: Trap: unreachable" || i.RecessEnds.IsZero() || i.LastError != i.Recess {
			t.Errorf("the monitor says %q until %v, last error %q", i.Recess, i.RecessEnds, i.LastError)
		}
		plugin.heal()
		r.until(time.Minute, "all handled", func() bool { return len(b.done("q")) == 3 })
		if got := fmt.Sprint(b.done("q")); got != "[1 2 3]" {
			t.Errorf("handled %s", got)
		}
		if i := r.info("q"); i.Recess != "" || i.LastError != "" || i.Settled[broker.RolledBack]+i.Settled[broker.QueueTurned] != 0 {
			t.Errorf("afterwards the monitor says %q, last error %q, settled %v", i.Recess, i.LastError, i.Settled)
		}
		if n := r.log.count("the plugin handles messages again"); n != 1 {
			t.Errorf("said %d times that it goes on", n)
		}
	})
}

// TestARecessIsNoLoop: what is given back is not received again while it lasts, whatever arrives and however many slots there are.
func TestARecessIsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		plugin := newSick(ErrNotStarted)
		r := start(t, b, one(PluginConfig{Runner: plugin, MaxReaders: 8}))
		b.send("q", "", 100)
		r.until(time.Second, "a recess", func() bool { return r.info("q").Recess != "" })
		synctest.Wait()
		turns, tries := b.count("turn"), plugin.tries.Load()
		b.send("q", "", 1)
		time.Sleep(900 * time.Millisecond)
		if b.count("turn") != turns || plugin.tries.Load() != tries {
			t.Errorf("%d turns and %d tries in the recess", b.count("turn")-turns, plugin.tries.Load()-tries)
		}
		if tries > 8 {
			t.Errorf("%d tries before the recess of 8 slots", tries)
		}
	})
}

// TestASilentBrokerIsTriedSooner, and another reason is news.
func TestASilentBrokerIsTriedSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		plugin := newSick(fmt.Errorf("%w: no answer", ErrNoAnswer))
		r := start(t, b, one(PluginConfig{Runner: plugin, MaxReaders: 1}))
		b.send("q", "g", 1)
		begin := time.Now()
		r.until(time.Second, "a third try", func() bool { return plugin.tries.Load() == 3 })
		if d := time.Since(begin).Round(10 * time.Millisecond); d != 300*time.Millisecond {
			t.Errorf("the third try came after %v, want 100 + 200 ms", d)
		}
		other := errors.New("another reason")
		plugin.fault.Store(&other)
		r.until(10*time.Second, "two more tries", func() bool { return plugin.tries.Load() == 5 })
		if n := r.log.count("the plugin cannot handle messages"); n != 2 {
			t.Errorf("%d lines for two reasons", n)
		}
		plugin.heal()
		r.until(10*time.Second, "it is handled", func() bool { return len(b.done("q")) == 1 })
	})
}

// TestAnAttemptFromBeforeARecessDoesNotEndIt, nor prolongs it.
func TestAnAttemptFromBeforeARecessDoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		var n atomic.Int64
		plugin := &scripted{func() Result {
			if n.Add(1) == 1 { // under way when the other one fails
				time.Sleep(500 * time.Millisecond)
				return Result{}
			}
			return Result{Settlement: broker.Settlement{Verdict: broker.VerdictRelease}, Fault: ErrNotStarted}
		}}
		r := start(t, b, one(PluginConfig{Runner: plugin, MaxReaders: 2}))
		b.send("q", "", 2)
		r.until(10*time.Second, "the first is handled", func() bool { return len(b.done("q")) == 1 })
		if i := r.info("q"); i.Recess == "" || r.log.count("again") != 0 {
			t.Errorf("the recess was ended: %q", i.Recess)
		}
		r.until(10*time.Second, "a second recess", func() bool { return n.Load() == 3 })
		if r.log.count("the plugin cannot handle messages") != 1 {
			t.Error("the same reason was said twice")
		}
	})
}

// scripted is a plugin that is a function.
type scripted struct{ f func() Result }

func (s *scripted) Run(context.Context, *Invocation) Result { return s.f() }
func (s *scripted) Digest() string                          { return "d1" }
func (s *scripted) Close(context.Context) error             { return nil }

// TestAnIdleReaderNeverOutlivesItsLease, with the shortest lease and bursts at every distance.
func TestAnIdleReaderNeverOutlivesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: &fakeRunner{}, MaxReaders: 4})(c)
			c.Lease = broker.MinLease
		})
		for gap := 300 * time.Millisecond; gap < 1500*time.Millisecond; gap += 50 * time.Millisecond {
			b.send("q", "", 10)
			time.Sleep(gap)
		}
		r.until(time.Second, "all handled", func() bool { return len(b.done("q")) == 240 })
		if n := r.log.count("level=ERROR") + r.log.count("level=WARN"); n != 0 || r.info("q").LeaseLosses != 0 {
			t.Errorf("%d lines of trouble, %d lost leases:\n%s", n, r.info("q").LeaseLosses, r.log.buf.String())
		}
	})
}

func TestALeaseOutsideItsRangeIsRefused(t *testing.T) {
	for _, lease := range []time.Duration{-1, time.Millisecond, broker.MinLease - 1, broker.MaxLease + 1} {
		_, err := New(Config{Readers: newFakeBroker(), Waker: newFakeBroker(), Lease: lease})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "1s to 5m0s") {
			t.Errorf("%v: got %v", lease, err)
		}
	}
}
