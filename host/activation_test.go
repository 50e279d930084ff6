package host

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

func TestT_AC_1_the_first_message_starts_one_reader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 8}))
		before := r.info("q")
		if before.State != Inactive || before.Readers != 0 {
			t.Errorf("idle: got %s with %d readers, want INACTIVE with 0", before.State, before.Readers)
		}
		b.send("q", "", 1)
		synctest.Wait()
		i := r.info("q")
		if started := i.ReadersStarted - before.ReadersStarted; started != 1 {
			t.Errorf("readers started: got %d, want 1", started)
		}
		if got := len(b.done("q")); got != 1 {
			t.Errorf("done: got %d, want 1", got)
		}
		if i.Settled[broker.Committed] != 1 {
			t.Errorf("committed: got %d, want 1", i.Settled[broker.Committed])
		}
	})
}

func TestT_AC_2_no_readers_allowed_starts_none_and_warns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: NoReaders}))
		b.send("q", "", 3)
		time.Sleep(time.Minute)
		if n := f.runs.Load(); n != 0 || b.count("open") != 0 {
			t.Errorf("got %d runs and %d readers, want none", n, b.count("open"))
		}
		if n := r.log.count("max_queue_readers is 0"); n != 1 {
			t.Errorf("warnings: got %d, want 1", n)
		}
	})
}

func TestT_AC_3_one_group_keeps_one_reader_working(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(3 * time.Millisecond)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 5}))
		b.send("q", "g", 1000)
		r.until(time.Minute, "1000 done", func() bool { return len(b.done("q")) == 1000 })
		if got := f.peak.Load(); got != 1 {
			t.Errorf("handlers at once: got %d, want 1", got)
		}
		if got := b.done("q"); !slices.IsSorted(got) {
			t.Error("one group was handled out of order")
		}
	})
}

func TestT_AC_4_many_groups_grow_to_the_limit_of_all_hosts(t *testing.T) {
	for _, hosts := range []int{1, 2} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker("q")
				f := &fakeRunner{handle: sleeps(time.Second)}
				var last *running
				for range hosts {
					last = start(t, b, one(PluginConfig{Runner: f, MaxReaders: 7}))
				}
				for g := range 40 {
					b.send("q", fmt.Sprint("g", g), 1)
				}
				last.until(time.Minute, "7 handlers at once", func() bool { return f.running.Load() == 7 })
				last.until(time.Minute, "40 done", func() bool { return len(b.done("q")) == 40 })
				if got := f.peak.Load(); got != 7 {
					t.Errorf("handlers at once: got %d, want 7", got)
				}
				if got := b.queues["q"].peak; got != 7 {
					t.Errorf("slots of all hosts: got %d, want 7", got)
				}
			})
		})
	}
}

func TestRampUpTakesNoTicks(t *testing.T) { // AC-12, ours: several at once
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(time.Minute)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 8}))
		began := time.Now()
		b.send("q", "", 100)
		r.until(time.Second, "8 handlers at once", func() bool { return f.running.Load() == 8 })
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("ramp-up: got %v, want at most 10ms", d)
		}
	})
}

func TestT_AC_5_lowering_the_limit_kills_nothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(10 * time.Second)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 6}))
		b.send("q", "", 100)
		r.until(time.Second, "6 run", func() bool { return f.running.Load() == 6 })
		if err := r.host.SetMaxReaders("q", 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := f.running.Load(); got != 6 {
			t.Errorf("running after lowering: got %d, want the 6 of before", got)
		}
		r.until(30*time.Second, "2 run", func() bool { return f.running.Load() == 2 })
		f.peak.Store(0)
		time.Sleep(time.Minute)
		if got := f.peak.Load(); got != 2 {
			t.Errorf("handlers at once under the new limit: got %d, want 2", got)
		}
		if n := r.info("q").Settled[broker.Released]; n != 0 {
			t.Errorf("released: got %d, want 0", n)
		}
	})
}

func TestRaisingMaxStartsMore(t *testing.T) { // AC-17
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(10 * time.Second)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 2}))
		b.send("q", "", 1000)
		r.until(time.Second, "2 run", func() bool { return f.running.Load() == 2 })
		if err := r.host.SetMaxReaders("q", 9); err != nil {
			t.Fatal(err)
		}
		r.until(2*time.Second, "more than 2 run while the old ones go on", func() bool { return f.running.Load() > 2 })
		r.until(40*time.Second, "9 run", func() bool { return f.running.Load() == 9 })
	})
}

func TestT_AC_6_activation_off_and_on_with_a_backlog_starts_at_once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{}
		r := start(t, b, one(PluginConfig{Runner: f}))
		if err := r.host.Activate("q", false); err != nil {
			t.Fatal(err)
		}
		b.send("q", "", 10)
		time.Sleep(time.Minute + DefaultSweep/2) // between two sweeps, which would start a reader too
		if got := f.runs.Load(); got != 0 {
			t.Fatalf("runs while activation is off: got %d, want 0", got)
		}
		if err := r.host.Activate("q", true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(5 * time.Millisecond)
		if got := len(b.done("q")); got != 10 {
			t.Errorf("done 5ms after ON: got %d, want 10", got)
		}
	})
}

func TestT_AC_7_idle_readers_exit_and_idle_costs_no_calls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: &fakeRunner{}})(c)
			c.Keeper, c.Sweep = nil, time.Hour
		})
		b.send("q", "", 10)
		time.Sleep(DefaultLinger + 10*time.Millisecond)
		i := r.info("q")
		if i.Readers != 0 || i.State != Inactive {
			t.Errorf("after the linger: got %d readers, %s; want 0, INACTIVE", i.Readers, i.State)
		}
		before := b.allCalls()
		time.Sleep(30 * time.Minute)
		if got := b.allCalls() - before; got != 0 {
			t.Errorf("calls of 30 idle minutes: got %d, want 0", got)
		}
		b.send("q", "", 1)
		synctest.Wait()
		if got := len(b.done("q")); got != 11 {
			t.Errorf("done after waking: got %d, want 11", got)
		}
	})
}

func TestMonitorStates(t *testing.T) { // AC-6
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		b.rtt = 10 * time.Millisecond
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{handle: sleeps(time.Second)}}))
		time.Sleep(time.Second)
		steps := []struct {
			after time.Duration
			want  State
		}{{0, Inactive}, {5 * time.Millisecond, Notified}, {500 * time.Millisecond, ReceivesOccurring}, {1500 * time.Millisecond, Inactive}}
		began := time.Now()
		for i, s := range steps {
			time.Sleep(time.Until(began.Add(s.after)))
			if got := r.info("q").State; got != s.want {
				t.Errorf("%v after the message: got %s, want %s", s.after, got, s.want)
			}
			if i == 0 {
				b.send("q", "", 1)
			}
		}
	})
}

func TestLostWakeUpIsFoundByTheSweep(t *testing.T) { // AC-9
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{}}))
		time.Sleep(DefaultSweep / 2)
		b.deaf = true
		b.send("q", "", 1)
		r.until(DefaultSweep+time.Second, "the message is done", func() bool { return len(b.done("q")) == 1 })
	})
}

func TestLostWakeUpBesideALongHandlerIsFoundByTheSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		var n atomic.Int64
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			if n.Add(1) == 1 {
				return sleeps(time.Hour)(ctx, inv)
			}
			return broker.Settlement{}
		}}
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: f})(c)
			c.Drain = -1
		})
		b.send("q", "", 1)
		time.Sleep(time.Minute)
		b.deaf = true
		b.send("q", "", 1)
		r.until(2*DefaultSweep+time.Second, "the second message is done", func() bool { return len(b.done("q")) == 1 })
	})
}

func TestBurstStaysInTheBroker(t *testing.T) { // field case S7 host-burst
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q", "other")
		f := &fakeRunner{handle: sleeps(10 * time.Second)}
		o := &fakeRunner{}
		r := start(t, b, func(c *Config) {
			c.Plugins = []PluginConfig{{Name: "p", Queue: "q", Runner: f, MaxReaders: 32}, {Name: "o", Queue: "other", Runner: o}}
		})
		b.send("q", "", 5000)
		time.Sleep(5 * time.Second)
		b.send("other", "", 1)
		synctest.Wait()
		if got := len(b.done("other")); got != 1 {
			t.Errorf("the other plugin: got %d done, want 1", got)
		}
		r.until(2*time.Hour, "5000 done", func() bool { return len(b.done("q")) == 5000 })
		if got := f.peak.Load(); got != 32 {
			t.Errorf("instances at once: got %d, want 32", got)
		}
		if got := f.runs.Load(); got != 5000 {
			t.Errorf("runs: got %d, want 5000", got)
		}
		if got := b.count("turn"); got > 15000 {
			t.Errorf("turns: got %d for 5000 slow units, want about one a unit", got)
		}
	})
}

func TestQueueOffStopsReadersWithOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		b.queues["q"].limit = 5
		bad := true
		f := &fakeRunner{handle: func(context.Context, *Invocation) broker.Settlement {
			if bad {
				return broker.Settlement{Verdict: broker.VerdictRollback, FailReason: broker.ReasonHandlerError, FailText: "no"}
			}
			return broker.Settlement{}
		}}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 4}))
		b.send("q", "g", 1)
		time.Sleep(10*time.Minute + time.Second) // between two sweeps
		if got := f.runs.Load(); got != 5 {
			t.Errorf("runs: got %d, want 5", got)
		}
		if i := r.info("q"); !i.Off || i.Readers != 0 || i.State != Inactive {
			t.Errorf("got off=%v readers=%d %s, want off with none", i.Off, i.Readers, i.State)
		}
		if got := r.log.count("queue is off"); got != 1 {
			t.Errorf("lines: got %d, want 1", got)
		}
		bad = false
		b.turn("q", true)
		time.Sleep(10 * time.Millisecond)
		if got := len(b.done("q")); got != 1 {
			t.Errorf("done after ON: got %d, want 1", got)
		}
		if got := r.log.count("queue is on"); got != 1 {
			t.Errorf("lines about ON: got %d, want 1", got)
		}
	})
}
