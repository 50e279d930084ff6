package guest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"parley/broker"
	"parley/host"
	"parley/host/guest/meter"
	"parley/sdk/abi"
)

// instance is one instance of the module. It belongs to one goroutine at a time.
type instance struct {
	clock
	attempt
	call   callContext
	module api.Module
	handle api.Function
	memory linear
	stack  [1]uint64
	runs   int
	source io.Reader // of random bytes
	ticks  int64     // the monotonic clock of a deterministic instance
	stdin  []byte    // of a WASI command
	stdout tail
	stderr tail
}

// callContext is the context guests are called with: host functions find their instance in it. It is the instance's own,
// so a call allocates none. Cancellation goes through the checkpoint, not through it.
type callContext struct{ in *instance }

// Deadline implements context.Context.
func (*callContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (*callContext) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (*callContext) Err() error { return nil }

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if _, ok := key.(instanceKey); ok {
		return c.in
	}
	return nil
}

type instanceKey struct{}

func instanceOf(ctx context.Context) *instance {
	if c, ok := ctx.(*callContext); ok {
		return c.in
	}
	return ctx.Value(instanceKey{}).(*instance)
}

// instantiate makes an instance and runs its start functions, until deadline at most. When it fails the instance is
// returned closed, for what it printed. inv is nil at load.
func (p *Plugin) instantiate(ctx context.Context, inv *host.Invocation, deadline int64, adapt func(wazero.ModuleConfig) wazero.ModuleConfig) (*instance, error) {
	in := &instance{source: rand.Reader}
	in.call.in = in
	in.plugin = p
	in.lazy.clock = &in.clock
	in.memory.spare = &p.spare
	in.memory.limit = uint64(p.opts.Limits.pages()) * pageSize
	in.stdout.limit, in.stderr.limit, in.logs.limit = p.opts.Limits.Output, p.opts.Limits.Output, p.opts.Limits.Output
	if p.opts.Deterministic {
		in.source = mathrand.NewChaCha8([32]byte{})
	}
	in.reset(inv)
	in.starting = true
	in.begin(ctx, 0, deadline)
	defer in.rests()
	cfg := p.moduleConfig(in)
	if adapt != nil {
		cfg = adapt(cfg)
	}
	mod, err := p.runtime.InstantiateModule(experimental.WithMemoryAllocator(&in.call, &in.memory), p.code, cfg)
	if err != nil {
		return in, err
	}
	in.module = mod
	in.counter, _ = mod.ExportedGlobal(meter.CounterExport).(api.MutableGlobal) // always there, except in benchmarks
	in.handle = mod.ExportedFunction(abi.Handle)
	if init := mod.ExportedFunction(abi.Initialize); init != nil && !p.info.Command {
		in.calls = callStack(init)
		if err := init.CallWithStack(&in.call, nil); err != nil {
			in.close()
			return in, fmt.Errorf("%s: %w", abi.Initialize, err)
		}
	}
	if in.handle != nil {
		in.calls = callStack(in.handle)
	}
	in.starting = false
	return in, nil
}

// moduleConfig gives the guest its clocks and random numbers. It gets no arguments, files or sockets.
func (p *Plugin) moduleConfig(in *instance) wazero.ModuleConfig {
	return wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions().
		WithRandSource(randomOf(in)).
		WithWalltime(func() (int64, int32) {
			now := in.now()
			return now.Unix(), int32(now.Nanosecond())
		}, sys.ClockResolution(time.Microsecond)).
		WithNanotime(in.nanotime, sys.ClockResolution(time.Microsecond)).
		WithOsyield(func() {})
}

// nanotime is the guest's monotonic clock. That of a deterministic instance moves by 1 µs at each reading, and by what the
// guest sleeps: a Go guest looks at it in its scheduler, so a real one makes its work differ a little each time.
func (in *instance) nanotime() int64 {
	if !in.plugin.opts.Deterministic {
		return mono()
	}
	in.ticks += int64(time.Microsecond)
	return in.ticks
}

func randomOf(in *instance) io.Reader { return readerFunc(in.random) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// run makes one attempt and reports whether the instance may be used again.
func (in *instance) run(ctx context.Context, inv *host.Invocation, res *host.Result) (keep bool) {
	in.runs++
	in.reset(inv)
	in.begin(ctx, in.plugin.opts.Limits.Fuel, 0)
	err := in.handle.CallWithStack(&in.call, in.stack[:])
	res.Fuel, res.Elapsed = in.end()
	res.Settlement.Unit = inv.Unit
	if err != nil {
		in.settleError(res, err)
	} else {
		keep = in.settle(res, int32(in.stack[0]))
	}
	in.collect(res)
	in.inv, in.effects = nil, nil // the caller's again
	return keep
}

// giveUp is the result of an attempt whose instance could not even be made: its unit goes back uncounted, since its handler was
// never entered.
func (in *instance) giveUp(inv *host.Invocation, err error) host.Result {
	var res host.Result
	res.Fuel, res.Elapsed = in.end()
	in.settleError(&res, err)
	failed, elapsed := res.Settlement, res.Elapsed
	res.Settlement = broker.Settlement{Unit: inv.Unit, Verdict: broker.VerdictRelease}
	switch {
	case failed.Verdict == broker.VerdictCommit:
		res.Fault = fmt.Errorf("%w: it exits with code 0 before its handler is called", host.ErrNotStarted)
	case failed.FailReason == broker.ReasonDeadlineExceeded:
		res.Fault = fmt.Errorf("%w: %s: stopped after %v", host.ErrNotStarted, failed.FailReason, elapsed.Round(time.Second/10))
	case failed.Verdict == broker.VerdictRollback:
		res.Fault = fmt.Errorf("%w: %s: %s", host.ErrNotStarted, failed.FailReason, failed.FailText)
	}
	in.collect(&res)
	return res
}

// reset makes the instance ready for inv. Nothing of the attempt before is left.
func (in *instance) reset(inv *host.Invocation) {
	in.attempt.reset(inv)
	in.memory.refused = false
	in.stdout.reset()
	in.stderr.reset()
}

func (in *instance) close() {
	if in.module != nil {
		_ = in.module.Close(context.Background()) // always nil: no file and no listener is behind it
	}
}
