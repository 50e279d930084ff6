package guest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

// mode is a way to bound a guest. Load makes metered plugins only; the others are here to be compared with.
type mode int

const (
	bare    mode = iota // neither metered nor interrupted
	metered             // as Load does it
	closing             // wazero's own interruption: WithCloseOnContextDone, and a context with a deadline for each call
	modes
)

func (m mode) String() string { return [modes]string{"bare", "metered", "CloseOnContextDone"}[m] }

// loadAs is Load in a mode.
func loadAs(t testing.TB, m mode, wasm []byte, opts Options) *Plugin {
	t.Helper()
	if m == metered {
		return load(t, wasm, opts)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := &Plugin{opts: opts, logs: newLogSink(nil, ""), stop: make(chan struct{}), finished: make(chan struct{}, 1)}
	if p.cache, err = wazero.NewCompilationCacheWithDir(filepath.Join(built.dir, "cache-"+m.String())); err != nil {
		t.Fatal(err)
	}
	cfg := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features).WithCompilationCache(p.cache)
	p.runtime = wazero.NewRuntimeWithConfig(t.Context(), cfg.WithCloseOnContextDone(m == closing))
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := provide(t.Context(), p.runtime); err != nil {
		t.Fatal(err)
	}
	if p.code, err = p.runtime.CompileModule(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	return p
}

// caller calls exports of one instance directly, with all that its mode does for a call.
type caller struct {
	t      testing.TB
	plugin *Plugin
	in     *instance
	mode   mode
}

func newCaller(t testing.TB, m mode, wasm []byte) *caller {
	t.Helper()
	p := loadAs(t, m, wasm, Options{})
	return &caller{t, p, instantiated(t, p), m}
}

// instantiated is an instance of p that the end of the test closes.
func instantiated(t testing.TB, p *Plugin) *instance {
	t.Helper()
	in, err := p.instantiate(context.Background(), nil, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.close)
	return in
}

// call calls an export n times with one argument, which functions without parameters ignore. It returns the last result.
func (c *caller) call(name string, n int, arg uint64) uint64 {
	c.t.Helper()
	f := c.in.module.ExportedFunction(name)
	if f == nil {
		c.t.Fatalf("the guest exports no %s", name)
	}
	c.in.calls = callStack(f)
	var stack [1]uint64
	for range n {
		stack[0] = arg
		if err := c.once(func(ctx context.Context) error { return f.CallWithStack(ctx, stack[:]) }); err != nil {
			c.t.Fatalf("%s, %s: %v", c.mode, name, err)
		}
	}
	return stack[0]
}

func (c *caller) once(call func(context.Context) error) error {
	switch c.mode {
	case metered:
		c.in.begin(context.Background(), 0, 0)
		defer c.in.end()
	case closing:
		ctx, cancel := context.WithTimeout(&c.in.call, DefaultLimits.Time)
		defer cancel()
		return call(ctx)
	}
	return call(&c.in.call)
}

// took is the time of one of n calls, in nanoseconds.
func (c *caller) took(name string, n int, arg uint64) float64 {
	start := time.Now()
	c.call(name, n, arg)
	return float64(time.Since(start)) / float64(n)
}

// input gives the guest a text to work on.
func (c *caller) input(text []byte) {
	c.t.Helper()
	at := uint32(c.call("input", 1, uint64(len(text))))
	if !c.in.module.Memory().Write(at, text) {
		c.t.Fatalf("the guest's buffer at %d has no room for %d bytes", at, len(text))
	}
}

// benchGuest is a guest of testdata/bench; that in Go is compiled first.
func benchGuest(t testing.TB, language string) []byte {
	t.Helper()
	if language == "go" {
		return goGuest(t, "testdata/bench/go")
	}
	wasm, err := os.ReadFile(filepath.Join("testdata/bench", language+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
