package host

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

// fakeRunner is a plugin that is a Go function.
type fakeRunner struct {
	handle func(ctx context.Context, inv *Invocation) broker.Settlement

	running, peak, runs atomic.Int64
}

func (f *fakeRunner) Run(ctx context.Context, inv *Invocation) Result {
	f.runs.Add(1)
	n := f.running.Add(1)
	defer f.running.Add(-1)
	for p := f.peak.Load(); n > p && !f.peak.CompareAndSwap(p, n); p = f.peak.Load() {
	}
	if f.handle == nil {
		return Result{}
	}
	return Result{Settlement: f.handle(ctx, inv)}
}

func (f *fakeRunner) Digest() string              { return "d1" }
func (f *fakeRunner) Close(context.Context) error { return nil }

// sleeps is a handler that takes d and gives up when its context ends.
func sleeps(d time.Duration) func(context.Context, *Invocation) broker.Settlement {
	return func(ctx context.Context, _ *Invocation) broker.Settlement {
		if !sleep(ctx, d) {
			return broker.Settlement{Verdict: broker.VerdictRelease}
		}
		return broker.Settlement{}
	}
}

// lines is a log for tests. Safe for concurrent use.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), part)
}

// running is a host that runs in a test.
type running struct {
	t      *testing.T
	host   *Host
	broker *fakeBroker
	log    *lines
	stop   context.CancelFunc
	ended  chan error
}

// start runs a host over b; edit may change its configuration. It is stopped, and the broker's findings are checked, at
// the end of the test.
func start(t *testing.T, b *fakeBroker, edit func(*Config)) *running {
	t.Helper()
	r := &running{t: t, broker: b, log: &lines{}, ended: make(chan error, 1)}
	cfg := Config{
		Readers: b, Waker: b, Keeper: b, Name: "h",
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	edit(&cfg)
	var err error
	if r.host, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.ended <- r.host.Run(ctx) }()
	synctest.Wait()
	t.Cleanup(func() { r.halt() })
	return r
}

// halt stops the host and waits for it. It may be called more than once.
func (r *running) halt() {
	r.t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run: %v", err)
	}
	r.ended <- nil
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	for _, f := range r.broker.faults {
		r.t.Error(f)
	}
	r.broker.faults = nil
}

func (r *running) info(queue string) MonitorInfo {
	r.t.Helper()
	for _, i := range r.host.Monitors() {
		if i.Queue == queue {
			return i
		}
	}
	r.t.Fatalf("no monitor for %s", queue)
	return MonitorInfo{}
}

// until polls cond, in the time of the test, and fails after limit.
func (r *running) until(limit time.Duration, what string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); !cond(); {
		if time.Now().After(end) {
			r.t.Fatalf("after %v still not: %s\n%+v", limit, what, r.host.Monitors())
		}
		time.Sleep(max(time.Millisecond, limit/2000))
	}
}

// one is a configuration of one plugin on queue q.
func one(p PluginConfig) func(*Config) {
	return func(c *Config) {
		p.Queue, p.Name = orDefault(p.Queue, "q"), orDefault(p.Name, "p")
		c.Plugins = []PluginConfig{p}
	}
}
