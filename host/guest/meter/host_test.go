package meter_test

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"parley/host/guest/meter"
)

var (
	//go:embed testdata/guests/stops.wasm
	stopsWasm []byte
	//go:embed testdata/guests/start.wasm
	startWasm []byte
)

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
	onHost      func() // called by each call of env.host, and onSlow by env.slow
	onSlow      func()
}

// exportCheckpoint installs the checkpoint for all modules of r. find returns the account of the module that calls.
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
	return newPrepared(t, config, wasm, metered)
}

// newPrepared is newInstance with a choice of the rewriting. Without any there is no counter.
func newPrepared(t testing.TB, config wazero.RuntimeConfig, wasm []byte, prepare func([]byte) ([]byte, error)) *instance {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features).WithMemoryLimitPages(64))
	t.Cleanup(func() { r.Close(ctx) })
	i := &instance{}
	i.meter.Begin(0, 1_000_000, time.Time{}) // for the start function
	exportCheckpoint(t, ctx, r, func(api.Module) *meter.Meter { i.checkpoints++; return &i.meter })
	env := r.NewHostModuleBuilder("env")
	env.NewFunctionBuilder().WithFunc(func() {
		i.hostCalls++
		if i.onHost != nil {
			i.onHost()
		}
	}).Export("host")
	env.NewFunctionBuilder().WithFunc(func() {
		if i.onSlow != nil {
			i.onSlow()
		}
		for end := time.Now().Add(5 * time.Microsecond); time.Now().Before(end); {
		}
	}).Export("slow")
	if _, err := env.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	prepared, err := prepare(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if i.module, err = r.InstantiateWithConfig(ctx, prepared, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	if counter := i.module.ExportedGlobal(meter.CounterExport); counter != nil {
		i.counter = counter.(api.MutableGlobal)
	}
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
