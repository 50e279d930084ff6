package guest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// TestCase37InstanceReuse: whatever an attempt did, the next one sees nothing of it (wasm-instance-reuse).
func TestCase37InstanceReuse(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{Limits: Limits{Time: 50 * time.Millisecond}})
	for _, c := range []struct {
		body    string
		verdict broker.Verdict
		reason  string
	}{
		{"u", broker.VerdictRollback, broker.ReasonTrap},
		{"l", broker.VerdictRollback, broker.ReasonDeadlineExceeded},
		{"0", broker.VerdictCommit, ""},
		{"3", broker.VerdictRollback, broker.ReasonHandlerError},
		{"r", broker.VerdictRollback, broker.ReasonStackOverflow},
	} {
		r := attemptOf(t, p, c.body)
		reason := r.Settlement.FailReason
		if c.body == "r" && reason == broker.ReasonDeadlineExceeded {
			reason = broker.ReasonStackOverflow // whichever limit is first
		}
		if r.Settlement.Verdict != c.verdict || reason != c.reason {
			t.Errorf("%s: %+v", c.body, r.Settlement)
		}
		if n := p.Idle(); n != 0 {
			t.Errorf("after %s an instance stayed in the pool", c.body)
		}
		wantCommit(t, attemptOf(t, p, "b"))
	}
	concurrent(t, p, 16, 200)
}

// concurrent runs total messages on workers goroutines; each must commit with memory of its own.
func concurrent(t *testing.T, p *Plugin, workers, total int) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for next.Add(1) <= int64(total) {
				inv := invocation(plain("d"))
				if r := p.Run(context.Background(), inv); r.Settlement.Verdict != broker.VerdictDeadLetter || r.Settlement.Unit != inv.Unit {
					t.Errorf("%+v", r.Settlement)
				}
				if r := p.Run(context.Background(), invocation(plain("b"))); r.Settlement.Verdict != broker.VerdictCommit {
					t.Errorf("%+v", r.Settlement)
				}
			}
		})
	}
	wg.Wait()
}

// TestPooledInstanceIsKept: an instance that commits is used again, up to MaxInvocations; a per_attempt one never.
func TestPooledInstanceIsKept(t *testing.T) {
	for _, c := range []struct {
		name string
		opts Options
		same bool // the second attempt sees the global of the first
		idle int
	}{
		{"pooled", Options{}, true, 0},
		{"one invocation", Options{MaxInvocations: 1}, false, 0},
		{"per attempt", Options{Instances: PerAttempt}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, wat(t, "trouble"), c.opts)
			wantCommit(t, attemptOf(t, p, "?")) // sets the global and commits
			r := attemptOf(t, p, "b")
			if same := r.Settlement.Verdict == broker.VerdictRollback; same != c.same {
				t.Errorf("same instance: %v, want %v", same, c.same)
			}
		})
	}
}

// TestTrim: a host that has become idle gives its instances back.
func TestTrim(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	burst(t, p, 8)
	if n := p.Idle(); n == 0 {
		t.Fatal("nothing is idle")
	}
	p.Trim(1)
	if n := p.Idle(); n != 1 {
		t.Errorf("%d idle instances, want 1", n)
	}
	p.Trim(0)
	wantCommit(t, attemptOf(t, p, "b"))
}

// burst holds n attempts inside the guest at the same time.
func burst(t *testing.T, p *Plugin, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { wantCommitOf(t, p) })
	}
	wg.Wait()
}

func wantCommitOf(t *testing.T, p *Plugin) {
	if r := p.Run(context.Background(), invocation(plain("p"))); r.Settlement.Verdict != broker.VerdictCommit {
		t.Errorf("%+v", r.Settlement)
	}
}

// TestCaseS7Burst: however many attempts come at once, no more than MaxInstances run; the others wait (host-burst).
func TestCaseS7Burst(t *testing.T) {
	const limit, callers = 4, 32
	p := load(t, wat(t, "trouble"), Options{MaxInstances: limit})
	var running, most atomic.Int64
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			inv := invocation(plain("c"))
			inv.Unit.Messages[0].Conversation, inv.Unit.Group = newHandle, "g:1"
			inv.Effects = effects{check: func(ctx context.Context, _ *broker.Effect) error {
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-release
				running.Add(-1)
				return nil
			}}
			if r := p.Run(context.Background(), inv); r.Settlement.Verdict != broker.VerdictRollback {
				t.Errorf("%+v", r.Settlement)
			}
		})
	}
	redistest.Eventually(t, "every instance is at work", func() bool { return running.Load() >= limit })
	other := load(t, wat(t, "empty"), Options{})
	wantCommit(t, attemptOf(t, other, ""))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if r := p.Run(ctx, invocation(plain("b"))); r.Settlement.Verdict != broker.VerdictRelease {
		t.Errorf("a waiting attempt whose context ends: %+v", r.Settlement)
	}
	close(release)
	wg.Wait()
	if n := most.Load(); n != limit {
		t.Errorf("%d attempts ran at once, want %d", n, limit)
	}
}

// TestCloseWaits: Close lets attempts in flight end, and stops them when its context ends.
func TestCloseWaits(t *testing.T) {
	p, err := Load(t.Context(), wat(t, "trouble"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	verdict := make(chan broker.Verdict)
	go func() {
		inv := invocation(plain("e"))
		var once sync.Once
		inv.Effects = effects{check: func(context.Context, *broker.Effect) error {
			once.Do(func() { close(started) })
			return broker.ErrQuota // the guest sends for ever
		}}
		verdict <- p.Run(context.Background(), inv).Settlement.Verdict
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	closed := make(chan error)
	go func() { closed <- p.Close(ctx) }()
	if v := <-verdict; v != broker.VerdictRelease && v != broker.VerdictRollback {
		t.Errorf("verdict %d", v)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if r := attemptOf(t, p, "b"); r.Settlement.Verdict != broker.VerdictRelease {
		t.Errorf("a closed plugin ran: %+v", r.Settlement)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// TestSameBytesTwice: a plugin is not hurt by the end of another one with the same bytes.
func TestSameBytesTwice(t *testing.T) {
	one := load(t, wat(t, "trouble"), Options{})
	two, err := Load(t.Context(), wat(t, "trouble"), Options{CacheDir: one.opts.CacheDir, Limits: Limits{Memory: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() != two.Digest() {
		t.Error("the digests differ")
	}
	wantRollback(t, attemptOf(t, two, "g"), broker.ReasonMemoryLimit, "limit of 1 MiB")
	done := make(chan broker.Verdict)
	go func() { done <- attemptOf(t, one, "p").Settlement.Verdict }()
	if err := two.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := <-done; v != broker.VerdictCommit {
		t.Errorf("verdict %d", v)
	}
	wantRollback(t, attemptOf(t, one, "u"), broker.ReasonTrap, "unreachable")
	wantCommit(t, attemptOf(t, one, "b"))
}
