package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

// TestTheLoopLeavesWhatTurnsSlow: fast units are run by the loop itself. Whenever one of them takes long, the loop goes on
// without it, again and again, and keeps its lease.
func TestTheLoopLeavesWhatTurnsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		const every, slow = 100, 20 * time.Second
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			if n := inv.Unit.Messages[0].SequenceNumber; n%every == 0 {
				return sleeps(slow)(ctx, inv)
			}
			return sleeps(10*time.Microsecond)(ctx, inv)
		}}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 8}))
		for round := range 5 {
			b.send("q", "", every) // its last one is slow
			time.Sleep(slow / 2)
			if got, want := len(b.done("q")), (round+1)*every-1-round; got < want-windowMax {
				t.Errorf("round %d: %d are done, want %d less those behind the slow one in its slot", round, got, want)
			}
		}
		r.until(time.Minute, "all done", func() bool { return len(b.done("q")) == 5*every })
		if got := r.info("q").LeaseLosses; got != 0 {
			t.Errorf("lease losses: got %d, want 0", got)
		}
	})
}

// TestALostLeaseCutsWhatTheLoopRan: a unit from which the loop was taken ends like any other when the reader is lost.
func TestALostLeaseCutsWhatTheLoopRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		var cause error
		stuck := true
		f := &fakeRunner{handle: func(ctx context.Context, inv *Invocation) broker.Settlement {
			if inv.Unit.Messages[0].SequenceNumber != 201 || !stuck {
				return sleeps(10*time.Microsecond)(ctx, inv)
			}
			stuck = false
			<-ctx.Done()
			cause = context.Cause(ctx)
			return broker.Settlement{}
		}}
		r := start(t, b, one(PluginConfig{Runner: f, MaxReaders: 1}))
		b.send("q", "", 200)
		r.until(time.Minute, "200 done", func() bool { return len(b.done("q")) == 200 })
		b.send("q", "", 1)
		synctest.Wait()
		b.mu.Lock()
		b.fail = func(op, _ string) error {
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
		r.until(10*time.Second, "the next reader has done it", func() bool { return len(b.done("q")) == 201 })
		if !errors.Is(cause, broker.ErrLockLost) {
			t.Errorf("cause of the guest's end: got %v, want ErrLockLost", cause)
		}
	})
}
