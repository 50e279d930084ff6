package meter_test

import (
	"context"
	_ "embed"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"parley/host/guest/meter"
)

//go:embed testdata/guests/stops.wasm
var stopsWasm []byte

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// engines are the two that wazero has. The interpreter is the same everywhere, the compiler is what production uses.
var engines = map[string]func() wazero.RuntimeConfig{
	"compiler":    wazero.NewRuntimeConfigCompiler,
	"interpreter": wazero.NewRuntimeConfigInterpreter,
}

// instance is the smallest embedder that keeps the contract of the package.
type instance struct {
	module      api.Module
	counter     api.MutableGlobal
	meter       meter.Meter
	checkpoints int
	hostCalls   int
	slowFor     time.Duration
}

// checkpoints installs the checkpoint for all modules of r. find returns the account of the module that calls.
func exportCheckpoint(t testing.TB, ctx context.Context, r wazero.Runtime, find func(api.Module) *meter.Meter) {
	t.Helper()
	check := func(_ context.Context, m api.Module, _ []uint64) {
		counter := m.ExportedGlobal(meter.CounterExport).(api.MutableGlobal)
		next, err := find(m).Checkpoint(int64(counter.Get()), time.Now())
		if err != nil {
			panic(err)
		}
		counter.Set(uint64(next))
	}
	_, err := r.NewHostModuleBuilder(meter.CheckpointModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(check), nil, nil).Export(meter.CheckpointName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

func newInstance(t testing.TB, config wazero.RuntimeConfig, wasm []byte) *instance {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features).WithMemoryLimitPages(64))
	t.Cleanup(func() { r.Close(ctx) })
	i := &instance{}
	i.meter.Begin(0, 1_000_000, time.Time{}) // for the start function
	exportCheckpoint(t, ctx, r, func(api.Module) *meter.Meter { i.checkpoints++; return &i.meter })
	env := r.NewHostModuleBuilder("env")
	env.NewFunctionBuilder().WithFunc(func() { i.hostCalls++ }).Export("host")
	env.NewFunctionBuilder().WithFunc(func() {
		for end := time.Now().Add(5 * time.Microsecond); time.Now().Before(end); {
		}
	}).Export("slow")
	if _, err := env.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := meter.Rewrite(wasm, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i.module, err = r.InstantiateWithConfig(ctx, m.Bytes, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	i.counter = i.module.ExportedGlobal(meter.CounterExport).(api.MutableGlobal)
	return i
}

// call runs an export under limits and returns what it used, how long it took and why it ended.
func (i *instance) call(name string, limit, slice int64, timeout time.Duration) (used int64, took time.Duration, err error) {
	start := time.Now()
	var deadline time.Time
	if timeout > 0 {
		deadline = start.Add(timeout)
	}
	i.counter.Set(uint64(i.meter.Begin(limit, slice, deadline)))
	_, err = i.module.ExportedFunction(name).Call(context.Background())
	return i.meter.Used(int64(i.counter.Get())), time.Since(start), err
}

func TestDeadlineStopsEveryGuest(t *testing.T) {
	for engine, config := range engines {
		for _, guest := range []string{
			"spin", "tree", "fill", "copy", "division", "host_loop", "host_table_loop", "tail", "grow_loop",
		} {
			t.Run(engine+"/"+guest, func(t *testing.T) {
				i := newInstance(t, config(), stopsWasm)
				_, took, err := i.call(guest, 0, 500_000, 50*time.Millisecond)
				if !errors.Is(err, meter.ErrDeadlineExceeded) {
					t.Fatalf("got error %v, want %v", err, meter.ErrDeadlineExceeded)
				}
				// The bound is generous, for a loaded machine under the race detector; benchmarks measure the real figure.
				if took > 2*time.Second {
					t.Errorf("got stopped after %v, want soon after 50ms", took)
				}
				t.Logf("stopped after %v", took)
			})
		}
	}
}
