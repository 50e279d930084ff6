package brokertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/broker"
)

// randomSteps is how many steps the randomised test makes in all.
const randomSteps = 10_000

// Hunt drives brokers that open makes with random steps against the model, until steps steps were made in all. After
// every step it checks the invariants and compares everything that is stored with the model; at the end of each run it
// lets all go well and wants everything to end consumed or dead, and nothing to be left over.
//
// A difference fails t with the shortest run that shows it.
func Hunt(t testing.TB, open New, steps int) {
	t.Helper()
	made := 0
	for made < steps {
		before := made
		rapid.Check(t, func(r *rapid.T) {
			if made >= steps {
				return
			}
			d := newDriver(t, r, open)
			defer d.stop()
			r.Repeat(d.actions())
			d.finish()
			made += d.steps
		})
		if made == before {
			t.Fatalf("no steps were made")
		}
	}
	t.Logf("%d steps", made)
}

// driver plays one random run.
type driver struct {
	t     *rapid.T
	h     Harness
	m     *model
	ctx   context.Context
	stop  func()
	steps int
	names int           // messages named so far
	fresh int           // groups named so far
	late  []func() bool // calls that are still on the wire
}

// newDriver opens a broker with settings drawn at random.
func newDriver(t testing.TB, r *rapid.T, open New) *driver {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	plain, work, home := broker.DefaultQueue(plainQueue, false), broker.DefaultQueue(workQueue, true), broker.DefaultQueue(homeQueue, true)
	sink := broker.DefaultQueue(sinkQueue, false)
	for _, q := range []*broker.QueueSettings{&plain, &work, &home, &sink} {
		q.Retry = broker.Retry{Multiplier: 1}
		q.Retry.Initial = rapid.SampledFrom([]time.Duration{0, 0, 2 * time.Second}).Draw(r, "retry of "+q.Name)
		q.Retry.Max = q.Retry.Initial
		q.Poison.Rollbacks = rapid.SampledFrom([]int{2, 3, 5}).Draw(r, "poison limit of "+q.Name)
		q.MaxDelivery = rapid.SampledFrom([]int{2, 3, 10}).Draw(r, "delivery limit of "+q.Name)
	}
	defs := broker.Definitions{
		Queues: []broker.QueueSettings{plain, work, home, sink},
		Services: []broker.Service{
			{Name: workSvc, Queue: workQueue, Contracts: []string{broker.ContractDefault}},
			{Name: homeSvc, Queue: homeQueue, Contracts: []string{broker.ContractDefault}},
		},
	}
	d := &driver{t: r, h: open(t), m: newModel(defs.Queues...), ctx: ctx, stop: cancel}
	if _, err := d.h.Broker.Apply(ctx, defs, false); err != nil {
		r.Fatalf("apply: %v", err)
	}
	d.look()
	return d
}

// actions are the steps, each by its weight.
func (d *driver) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){"": func(*rapid.T) { d.look() }}
	for _, a := range []struct {
		name   string
		weight int
		do     func()
	}{
		{"send", 3, d.send},
		{"begin", 1, d.begin},
		{"say", 4, d.say},
		{"end", 1, d.end},
		{"open", 3, d.open},
		{"turn", 14, func() { d.turn(0) }},
		{"turn with lost replies", 2, func() { d.turn(d.lossy()) }},
		{"late call arrives", 1, d.deliver},
		{"kill", 1, d.kill},
		{"stall", 1, d.stall},
		{"wake", 1, d.wake},
		{"close", 1, d.closeReader},
		{"wait", 3, d.wait},
		{"expire", 1, d.expire},
		{"keep", 2, d.keep},
		{"off", 1, d.off},
		{"on", 2, d.on},
	} {
		for i := range a.weight {
			all[fmt.Sprintf("%s %d", a.name, i)] = func(t *rapid.T) {
				d.t = t
				a.do()
				d.steps++
			}
		}
	}
	return all
}

// look compares every queue with the model.
func (d *driver) look() {
	for _, name := range []string{plainQueue, workQueue, homeQueue, sinkQueue} {
		snap, err := d.h.Broker.Snapshot(d.ctx, name)
		if err != nil {
			d.t.Fatalf("snapshot of %s: %v", name, err)
		}
		d.m.now = snap.Now
		if err := d.m.observe(snap); err != nil {
			d.t.Fatalf("%s: %v", name, err)
		}
	}
}

// pick draws one of all, or skips the step when there is none.
func pick[V any](d *driver, label string, all []V) V {
	if len(all) == 0 {
		d.t.Skip("no " + label)
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(d.t, label)]
}

// chance is true n times in a hundred.
func (d *driver) chance(label string, n int) bool {
	return rapid.IntRange(0, 99).Draw(d.t, label) < n
}

// name names the next message.
func (d *driver) name() string {
	d.names++
	return fmt.Sprint("m", d.names)
}

// readers is every registered reader for which ok is true.
func (d *driver) readers(ok func(*modelReader) bool) []*modelReader {
	var all []*modelReader
	for _, name := range []string{plainQueue, workQueue, homeQueue, sinkQueue} {
		for _, r := range d.m.queues[name].readers {
			if ok(r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (d *driver) awake() []*modelReader {
	return d.readers(func(r *modelReader) bool { return !r.asleep })
}

// sides is every side for which ok is true.
func (d *driver) sides(ok func(*modelSide) bool) []*modelSide {
	var all []*modelSide
	for _, s := range d.m.sides {
		if s.handle != "" && ok(s) {
			all = append(all, s)
		}
	}
	return all
}
