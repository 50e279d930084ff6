// Package demo tells what Parley does, on an embedded broker, with two example plugins built from source and real webhook
// bodies. Every number it prints is compared with one that was counted another way; a demo with a wrong number fails.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/host"
	"parley/host/guest"
	"parley/tracing"
)

// namespace of everything the demo makes.
const namespace = "demo"

// Names of the demo's entities.
const (
	hooks       = "hooks"
	triaged     = "triaged"
	inventory   = "inventory"
	stationQ    = "workstations"
	station     = "//shop/Workstation"
	stock       = "//shop/Inventory"
	triagePlug  = "github-triage"
	stockConfig = "gear-7=10 shaft-2=4"
)

// fuelLimit is twice what the dearest of the real webhook bodies needs, and less than half of what the oversized one does.
const fuelLimit = 500_000_000

// patience is how long the demo waits for anything that should happen at once.
const patience = 30 * time.Second

// demo is one telling.
type demo struct {
	story
	b      *redisbroker.Broker
	tel    *tracing.Telemetry
	tree   *tracing.TreePrinter
	host   *host.Host
	triage []byte // the module of github-triage
	loaded []*guest.Plugin
	cache  string

	bodies  []webhook
	dear    int64  // sequence number of the message that ran out of fuel
	grantID string // message id of the withdrawal that was granted
}

// Run tells the story on out. cache is where compiled plugins are kept, "" for nowhere. It returns an error if anything
// failed or any number was wrong.
func Run(ctx context.Context, out io.Writer, cache string) error {
	start := time.Now()
	d := &demo{story: story{w: out}, tree: &tracing.TreePrinter{}, cache: cache}
	defer d.close()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.host.Run(running) }()
	err := d.tell(ctx)
	stop()
	if e := <-ended; err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return d.conclude(time.Since(start))
}

// tell goes through the acts.
func (d *demo) tell(ctx context.Context) error {
	for _, act := range []func(context.Context) error{
		d.webhooks, d.withdrawal, d.poison, d.clean, d.deadLetters, d.resubmit, d.spanTree, d.audit,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare starts the broker, builds and loads the plugins and makes the host.
func (d *demo) prepare(ctx context.Context) (err error) {
	if d.b, err = redisbroker.OpenEmbedded(ctx, redisbroker.Options{Namespace: namespace}); err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	if d.tel, err = tracing.Setup(ctx, tracing.Options{Exporter: d.tree, Namespace: namespace, Log: quiet}); err != nil {
		return err
	}
	d.say("Parley: an embedded broker (it keeps nothing), two plugins built from Go source, real webhook bodies.")
	if _, err = d.b.Apply(ctx, entities(), false); err != nil {
		return err
	}
	var plugins []host.PluginConfig
	for _, p := range []struct {
		name, queue string
		opt         guest.Options
	}{
		{inventory, inventory, guest.Options{Config: map[string]string{"stock": stockConfig}}},
		{triagePlug, hooks, guest.Options{Limits: guest.Limits{Fuel: fuelLimit}}},
	} {
		code, err := d.build(ctx, p.name)
		if err != nil {
			return err
		}
		if p.name == triagePlug {
			d.triage = code
		}
		loaded, err := d.load(ctx, code, p.name, p.opt)
		if err != nil {
			return err
		}
		plugins = append(plugins, host.PluginConfig{Name: p.name, Queue: p.queue, Runner: loaded})
	}
	d.host, err = host.New(host.Config{
		Readers: d.b, Waker: d.b, Keeper: d.b, Plugins: plugins, Observer: d.tel.Observer(), Log: quiet, Drain: 5 * time.Second,
	})
	return err
}

func (d *demo) load(ctx context.Context, code []byte, name string, opt guest.Options) (*guest.Plugin, error) {
	opt.Name, opt.CacheDir = name, d.cache
	p, err := guest.Load(ctx, code, opt)
	if err == nil {
		d.loaded = append(d.loaded, p)
	}
	return p, err
}

// entities are two plain queues that dead-letter at the third failure, and two services whose queues go off at the fifth.
func entities() broker.Definitions {
	hooksQueue := broker.DefaultQueue(hooks, false)
	hooksQueue.MaxDelivery = 3
	hooksQueue.Retry = broker.Retry{Multiplier: broker.DefaultMultiplier}
	return broker.Definitions{
		Queues: []broker.QueueSettings{
			hooksQueue, broker.DefaultQueue(triaged, false), broker.DefaultQueue(inventory, true), broker.DefaultQueue(stationQ, true),
		},
		Services: []broker.Service{
			{Name: station, Queue: stationQ}, {Name: stock, Queue: inventory, Contracts: []string{broker.ContractDefault}},
		},
	}
}

// close frees everything. It has its own time: the context may have ended.
func (d *demo) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range d.loaded {
		d.note("a plugin did not close", p.Close(ctx))
	}
	if d.tel != nil {
		d.note("telemetry did not end well", d.tel.Shutdown(ctx))
	}
	if d.b != nil {
		d.note("the embedded broker did not close", d.b.Close())
	}
}

// until polls until holds says so. What it waits for leads to a number that is checked afterwards.
func (d *demo) until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, ctx.Err())
		}
	}
}

// counts are the counters of a queue.
func (d *demo) counts(ctx context.Context, queue string) (broker.Counts, error) {
	q, err := d.b.Queue(ctx, queue)
	return q.Counts, err
}
