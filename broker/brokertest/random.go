package brokertest

import (
	"context"
	"flag"
	"fmt"
	"strings"
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
	defer setFlag(t, "rapid.steps", "100")()
	defer setFlag(t, "rapid.nofailfile", "true")() // handles differ from run to run, so a file would not replay
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

// setFlag sets a flag of rapid until the returned function is called: opening a broker costs more than some steps.
func setFlag(t testing.TB, name, value string) (restore func()) {
	t.Helper()
	f := flag.Lookup(name)
	if f == nil {
		t.Fatalf("rapid has no flag %s", name)
	}
	old := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatalf("set %s: %v", name, err)
	}
	return func() { _ = f.Value.Set(old) }
}

// driver plays one random run.
type driver struct {
	t     *rapid.T
	h     Harness
	m     *model
	ctx   context.Context
	stop  func()
	steps int
	names int             // messages named so far
	fresh int             // groups named so far
	late  []func() bool   // calls that are still on the wire
	story []string        // what was done, for the failure message
	dirty map[string]bool // queues that the last steps may have changed
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
	d.dirty = map[string]bool{}
	d.touch(allQueues...)
	d.look()
	return d
}

// actions are the steps, each by its weight.
func (d *driver) actions() map[string]func(*rapid.T) {
	dialogs := []string{homeQueue, workQueue}
	all := map[string]func(*rapid.T){"": func(*rapid.T) { d.look() }}
	for _, a := range []struct {
		name   string
		weight int
		queues []string // that it may change beside those it touches itself
		do     func()
	}{
		{"send", 3, nil, d.send},
		{"begin", 1, dialogs, d.begin},
		{"say", 4, dialogs, d.say},
		{"end", 1, dialogs, d.end},
		{"open", 3, nil, d.open},
		{"turn", 14, nil, func() { d.turn(0) }},
		{"turn with lost replies", 2, nil, func() { d.turn(d.lossy()) }},
		{"late call arrives", 1, allQueues, d.deliver},
		{"kill", 1, nil, d.kill},
		{"stall", 1, nil, d.stall},
		{"wake", 1, nil, d.wake},
		{"close", 1, nil, d.closeReader},
		{"wait", 3, allQueues, d.wait},
		{"expire", 1, allQueues, d.expire},
		{"keep", 2, allQueues, d.keep},
		{"off", 1, nil, d.off},
		{"on", 2, nil, d.on},
	} {
		for i := range a.weight {
			all[fmt.Sprintf("%s %d", a.name, i)] = func(t *rapid.T) {
				d.t = t
				d.touch(a.queues...)
				a.do()
				d.steps++
			}
		}
	}
	return all
}

// note adds a line to the story.
func (d *driver) note(format string, args ...any) {
	d.story = append(d.story, fmt.Sprintf(format, args...))
}

// fail fails the run and tells its story.
func (d *driver) fail(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("%s\nafter:\n  %s", fmt.Sprintf(format, args...), strings.Join(d.story, "\n  "))
}

var allQueues = []string{plainQueue, workQueue, homeQueue, sinkQueue}

// touch notes that a step may have changed those queues.
func (d *driver) touch(queues ...string) {
	for _, q := range queues {
		d.dirty[q] = true
	}
}

// look compares every queue that may have changed with the model.
func (d *driver) look() {
	for _, name := range allQueues {
		if !d.dirty[name] {
			continue
		}
		snap, err := d.h.Broker.Snapshot(d.ctx, name)
		if err != nil {
			d.fail("snapshot of %s: %v", name, err)
		}
		d.m.now = snap.Now
		if err := d.m.observe(snap); err != nil {
			d.fail("%s: %v", name, err)
		}
	}
	d.dirty = map[string]bool{}
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
	for _, name := range allQueues {
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
