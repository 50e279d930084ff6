package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

func TestDrainWhileIdleIsImmediate(t *testing.T) { // field case 8 A
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{}}))
		b.send("q", "", 1)
		time.Sleep(500 * time.Millisecond) // the reader lingers
		began := time.Now()
		r.halt()
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("idle drain: got %v, want none", d)
		}
	})
}

func TestDrainFinishesWhatRunsAndReleasesTheRest(t *testing.T) { // field case 8 B
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		var order []int64
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			order = append(order, inv.Unit.Messages[0].SequenceNumber)
			return sleeps(1500*time.Millisecond)(ctx, inv)
		}}
		h := one(PluginConfig{Runner: f, MaxReaders: 1})
		r := start(t, b, h)
		r.host.monitors["q"].pace.add(time.Microsecond) // so that all four are prefetched into one slot
		b.send("q", "", 4)
		time.Sleep(200 * time.Millisecond)
		if got := b.held("q"); got != 4 {
			t.Fatalf("prefetched: got %d, want 4", got)
		}
		began := time.Now()
		r.halt()
		if d := time.Since(began); d > 1400*time.Millisecond {
			t.Errorf("drain: got %v, want the 1.3 s that the handler still needs", d)
		}
		if got := b.done("q"); len(got) != 1 || got[0] != 1 {
			t.Errorf("done: got %v, want [1]", got)
		}
		r = start(t, b, h)
		r.until(time.Minute, "the rest is done", func() bool { return len(b.done("q")) == 4 })
		if fmt.Sprint(order) != "[1 2 3 4]" {
			t.Errorf("runs: got %v, want each once", order)
		}
		for _, c := range []broker.Consequence{broker.RolledBack, broker.DeadLettered} {
			if got := r.info("q").Settled[c]; got != 0 {
				t.Errorf("consequence %d: got %d, want 0", c, got)
			}
		}
	})
}

func TestDrainCutsWhatOutlivesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(time.Hour)}
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: f, MaxReaders: 4})(c)
			c.Drain = 3 * time.Second
		})
		b.send("q", "", 4)
		time.Sleep(time.Second)
		began := time.Now()
		r.halt()
		if d := time.Since(began); d < 3*time.Second || d > 3100*time.Millisecond {
			t.Errorf("drain: got %v, want 3 s", d)
		}
		for _, m := range b.queues["q"].ready {
			if m.msg.DeliveryCount != 0 {
				t.Errorf("message %d: delivery count %d after a shutdown, want 0", m.msg.SequenceNumber, m.msg.DeliveryCount)
			}
		}
		if got := len(b.queues["q"].ready); got != 4 {
			t.Errorf("given back: got %d, want 4", got)
		}
	})
}

func TestDrainWithABrokenBrokerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &fakeRunner{handle: sleeps(time.Second)}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 4}))
		b.send("q", "", 40)
		time.Sleep(1500 * time.Millisecond)
		b.mu.Lock()
		b.fail = func(string, string) error { return errors.New("connection refused") }
		b.mu.Unlock()
		began := time.Now()
		r.halt()
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("drain: got %v, want under 5 s", d)
		}
	})
}

func TestHostRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{}}))
		r.halt()
		if err := r.host.Run(t.Context()); !errors.Is(err, ErrRan) {
			t.Errorf("second Run: got %v, want ErrRan", err)
		}
	})
}

func TestStartStopStressLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		b.rtt = 100 * time.Microsecond
		f := &fakeRunner{handle: sleeps(700 * time.Microsecond)}
		const rounds, batch = 60, 50
		for i := range rounds {
			r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 1 + i%9}))
			b.send("q", []string{"", "g"}[i%2], batch)
			time.Sleep(time.Duration(i%11) * 700 * time.Microsecond)
			r.halt()
		}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 16}))
		r.until(time.Minute, "all done", func() bool { return len(b.done("q")) == rounds*batch })
		if got := f.runs.Load(); got != rounds*batch {
			t.Errorf("runs: got %d, want each message once: %d", got, rounds*batch)
		}
	})
}

func TestRealTimeRunLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	b := newFakeBroker("q")
	b.rtt = 50 * time.Microsecond
	f := &fakeRunner{}
	h, err := New(Config{Readers: b, Waker: b, Keeper: b, Plugins: []PluginConfig{{Name: "p", Queue: "q", Runner: f, MaxReaders: 32}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	b.send("q", "", 20_000)
	for len(b.done("q")) < 20_000 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 1000 {
			t.Fatalf("goroutines: got %d, want %d", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
	for _, f := range b.faults {
		t.Error(f)
	}
}

// held is how many units the readers of queue hold.
func (b *fakeBroker) held(queue string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.queues[queue].readers {
		n += len(r.held)
	}
	return n
}
