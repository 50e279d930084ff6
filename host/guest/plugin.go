package guest

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"parley/broker"
	"parley/host"
)

// Plugin is one loaded module with its instances. It implements host.Runner.
type Plugin struct {
	opts    Options
	info    Info
	runtime wazero.Runtime
	cache   wazero.CompilationCache // nil without a cache directory
	code    wazero.CompiledModule
	pool    pool
	spare   region
	logs    *logSink

	slots    chan struct{} // nil, or as many tokens as instances may run
	running  atomic.Int64  // Runs in flight
	closing  atomic.Bool
	stopped  atomic.Bool   // Close ran out of patience: attempts end at their next check
	stop     chan struct{} // closed together with stopped
	finished chan struct{} // closed by the last Run of a closing plugin
}

var (
	_ host.Runner  = (*Plugin)(nil)
	_ host.Trimmer = (*Plugin)(nil)
	_ host.Pooled  = (*Plugin)(nil)
)

// Digest is the sha256 of the module as it was given to Load, in hexadecimal.
func (p *Plugin) Digest() string { return p.info.Digest }

// Info describes the module and the limits it runs under.
func (p *Plugin) Info() Info { return p.info }

// Run makes one attempt at inv.Unit. See host.Runner.
func (p *Plugin) Run(ctx context.Context, inv *host.Invocation) (res host.Result) {
	p.running.Add(1)
	defer p.leave()
	if p.closing.Load() || ctx.Err() != nil {
		return released(inv.Unit)
	}
	if p.slots != nil {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return released(inv.Unit)
		case <-p.stop:
			return released(inv.Unit)
		}
	}
	if p.info.Command {
		return p.runCommand(ctx, inv)
	}
	in := p.pool.take()
	if in == nil {
		var err error
		if in, err = p.instantiate(ctx, inv, p.deadline(), nil); err != nil {
			return in.giveUp(inv, err)
		}
	}
	keep := in.run(ctx, inv, &res)
	if keep && p.keeps(in) && !p.closing.Load() {
		p.pool.put(in)
	} else {
		in.close()
	}
	if len(res.Logs) > 0 {
		p.logs.write(ctx, inv, res.Logs)
	}
	return res
}

// deadline is when an instance that starts now must have started: its time is not the handler's.
func (p *Plugin) deadline() int64 { return mono() + int64(p.opts.Limits.Time) }

func (p *Plugin) keeps(in *instance) bool {
	return p.opts.Instances == Pooled && (p.opts.MaxInvocations == 0 || in.runs < p.opts.MaxInvocations)
}

// leave ends a Run. The last one of a closing plugin tells Close.
func (p *Plugin) leave() {
	if p.running.Add(-1) == 0 && p.closing.Load() {
		p.signalFinished()
	}
}

func (p *Plugin) signalFinished() {
	select {
	case p.finished <- struct{}{}:
	default:
	}
}

// Trim closes idle instances until at most keep are left. See host.Trimmer.
func (p *Plugin) Trim(keep int) {
	for _, in := range p.pool.trim(keep) {
		in.close()
	}
	if keep == 0 {
		p.spare.free()
	}
}

// Instances returns how many instances wait in the pool and how many attempts run. See host.Pooled.
func (p *Plugin) Instances() (idle, busy int) { return p.pool.size(), int(p.running.Load()) }

// Idle is the number of instances that wait in the pool.
func (p *Plugin) Idle() int { return p.pool.size() }

// Close frees compiled code and idle instances. It waits for Runs in flight; when ctx ends first, it stops them, and they
// give their units back uncounted. A second Close does nothing.
func (p *Plugin) Close(ctx context.Context) error {
	if !p.closing.CompareAndSwap(false, true) {
		return nil
	}
	for p.running.Load() > 0 {
		select {
		case <-p.finished:
		case <-ctx.Done():
			if p.stopped.CompareAndSwap(false, true) {
				close(p.stop)
			}
			<-p.finished
		}
	}
	p.Trim(0)
	err := p.runtime.Close(context.Background())
	if p.cache != nil {
		if cerr := p.cache.Close(context.Background()); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("close plugin %s: %w", p.opts.Name, err)
	}
	return nil
}

func released(u *broker.Unit) host.Result {
	return host.Result{Settlement: broker.Settlement{Unit: u, Verdict: broker.VerdictRelease}}
}
