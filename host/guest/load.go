package guest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/host"
	"parley/host/guest/meter"
	"parley/sdk/abi"
)

// Load makes a plugin of a module. It checks, rewrites and compiles it and starts one instance, so what Load accepts can
// run. A module or option it refuses is a broker.ErrInvalid that names what is wrong and what to do.
func Load(ctx context.Context, wasm []byte, opts Options) (*Plugin, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, refused(opts.Name, err)
	}
	module, err := decode(wasm)
	if err != nil {
		return nil, refused(opts.Name, err)
	}
	info, err := describe(wasm, module, opts.Limits)
	if err != nil {
		return nil, refused(opts.Name, err)
	}
	p := &Plugin{
		opts: opts, info: info,
		logs: newLogSink(opts.Log, opts.Name),
		stop: make(chan struct{}), finished: make(chan struct{}, 1),
	}
	if opts.MaxInstances > 0 {
		p.slots = make(chan struct{}, opts.MaxInstances)
	}
	if err := p.compile(ctx, module.Bytes); err != nil {
		return nil, refused(opts.Name, err)
	}
	if err := p.start(ctx); err != nil {
		_ = p.Close(ctx) // the other error is the one to tell
		return nil, refused(opts.Name, err)
	}
	return p, nil
}

func refused(name string, err error) error {
	if name == "" {
		return broker.ErrInvalid.With("%v", err)
	}
	return broker.ErrInvalid.With("plugin %s: %v", name, err)
}

// describe says what the module is, after checking it.
func describe(wasm []byte, module meter.Module, limits Limits) (Info, error) {
	sum := sha256.Sum256(wasm)
	info := Info{
		Digest: hex.EncodeToString(sum[:]), Size: len(wasm), Checks: module.Checks, Limits: limits,
		Imports: module.Imports, Exports: module.Exports, Needs: capabilitiesOf(module.Imports),
	}
	_, handler := module.Export(abi.Handle)
	_, start := module.Export(abi.Start)
	info.Command = start && !handler
	if len(module.Memories) > 0 {
		info.Memory = module.Memories[0]
	}
	return info, check(module, info, limits)
}

// leastStart is what the first start may take whatever the limits: the machine is busiest when many plugins are loaded.
const leastStart = 10 * time.Second

// start makes the first instance, which stays in the pool. A command is started by its first message only.
func (p *Plugin) start(ctx context.Context) error {
	if p.info.Command {
		return nil
	}
	deadline := mono() + int64(max(p.opts.Limits.Time, leastStart))
	in, err := p.instantiate(ctx, nil, deadline, nil)
	if err != nil {
		res := in.giveUp(&host.Invocation{Unit: &broker.Unit{}}, err)
		text := "the host takes it back"
		if res.Fault != nil {
			text = strings.TrimPrefix(res.Fault.Error(), host.ErrNotStarted.Error()+": ")
		}
		return fmt.Errorf("it does not start: %s", strings.ReplaceAll(text, "\n", "; "))
	}
	if p.opts.Instances == Pooled {
		p.pool.put(in)
	} else {
		in.close()
	}
	return nil
}

// provide instantiates the modules that guests import.
func provide(ctx context.Context, r wazero.Runtime) error {
	modules := []struct {
		name string
		fill func(wazero.HostModuleBuilder)
	}{
		{abi.Module, exportFunctions},
		{wasiModule, exportWASI},
		{abortModule, exportAbort},
		{meter.CheckpointModule, exportCheckpoint},
	}
	for _, m := range modules {
		b := r.NewHostModuleBuilder(m.name)
		m.fill(b)
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", m.name, err)
		}
	}
	return nil
}

func exportCheckpoint(b wazero.HostModuleBuilder) {
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(checkpoint), nil, nil).Export(meter.CheckpointName)
}
