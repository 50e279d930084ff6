package brokertest

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/broker"
)

// randomSteps is how many steps the randomised test makes in all.
const randomSteps = 10_000

// Hunt drives brokers that open makes with random steps against the model until that many were made in all. After
// every step it checks the invariants and compares everything that is stored with the model; at the end of each run it
// lets all go well and wants everything to end consumed or dead, and nothing to be left over.
//
// A difference fails t with the shortest run that shows it.
func Hunt(t testing.TB, open New, steps int) {
	t.Helper()
	hunting.Lock()
	defer hunting.Unlock()
	hunt(t, open, steps)
}

// hunting is held by whoever hunts: rapid's settings are flags of the whole test binary, and suites run side by side.
var hunting sync.Mutex

func hunt(t testing.TB, open New, steps int) {
	t.Helper()
	defer setFlag(t, "rapid.steps", "100")()
	defer setFlag(t, "rapid.nofailfile", "true")() // handles differ from run to run, so a file would not replay
	made, seen := 0, map[string]int{}
	for made < steps {
		before := made
		rapid.Check(t, func(r *rapid.T) {
			if made >= steps {
				return
			}
			d := newDriver(t, r, open)
			defer d.stop()
			r.Repeat(map[string]func(*rapid.T){"": func(*rapid.T) { d.look() }, "step": d.step})
			d.finish()
			made += d.steps
			for what, n := range d.m.seen {
				seen[what] += n
			}
		})
		if made == before {
			t.Fatalf("no steps were made")
		}
	}
	t.Logf("%d steps: %v", made, seen)
	for _, what := range rare {
		if steps >= randomSteps && seen[what] == 0 {
			t.Errorf("in %d steps it never happened: %s", made, what)
		}
	}
}

// rare is what must happen in a whole run of the randomised test: it would prove less without.
var rare = []string{
	"unit of several messages", "rollback", "rollback of an uncertain unit", "pause", "poison turns a queue off",
	"dead letter at the limit", "death in a unit", "uncertain death", "uncertain deaths become certain", "commit refused: locked",
	"commit refused: illegal", "end", "timer fired", "sent by transmission", "transmission arrived", "call of an expired reader",
	"late call", "settlement over a broken line", "effect 1", "effect 3", "effect 4", "effect 5", "effect 6", "effect 7",
	"dead letter parks", "resubmit", "resubmit in the old place", "failure of a unit of several", "alone after a unit of several failed",
	"single dead letter", "single dead letter of several", "dead letter ends its conversation",
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
	late  []func() bool   // calls that are still on the wire
	pure  bool            // no sessions in the queue plain: a broker may have a shorter way there
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
		q.Poison.Rollbacks = rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(r, "poison limit of "+q.Name)
		q.OnDeadLetter = rapid.SampledFrom([]string{"continue", "park", "end"}).Draw(r, "on dead letter of "+q.Name)
		q.MaxDelivery = rapid.SampledFrom([]int{1, 2, 3, 10}).Draw(r, "delivery limit of "+q.Name)
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
	d.pure = rapid.Bool().Draw(r, "no sessions in plain")
	d.touch(allQueues...)
	d.look()
	return d
}

// action is one kind of step.
type action struct {
	name   string
	weight int
	can    func() bool // nil: always
	queues []string    // that it may change beside those it touches itself
	do     func()
}

// actions are all kinds of steps.
func (d *driver) actions() []action {
	dialogs := []string{homeQueue, workQueue}
	awake := func() bool { return len(d.awake()) > 0 }
	talk := func() bool { return len(d.sides(func(*modelSide) bool { return true })) > 0 }
	open := func() bool { return len(d.sides(func(s *modelSide) bool { return !s.ended })) > 0 }
	return []action{
		{"turn", 40, awake, nil, func() { d.turn(0) }},
		{"turn over a broken line", 6, awake, nil, func() { d.turn(d.lossy()) }},
		{"send", 8, nil, nil, d.send},
		{"say", 10, talk, dialogs, d.say},
		{"begin", 2, nil, dialogs, d.begin},
		{"end", 1, open, dialogs, d.end},
		{"open", 8, func() bool { return len(d.awake()) < 4 }, nil, d.open},
		{"late call", 2, func() bool { return len(d.late) > 0 }, allQueues, d.deliver},
		{"kill", 2, awake, nil, d.kill},
		{"stall", 3, awake, nil, d.stall},
		{"wake", 6, func() bool { return len(d.stalled()) > 0 }, nil, d.wake},
		{"close", 1, awake, nil, d.closeReader},
		{"wait", 6, nil, allQueues, d.wait},
		{"expire", 3, nil, allQueues, d.expire},
		{"keep", 8, nil, allQueues, d.keep},
		{"resubmit", 4, func() bool { return len(d.deadLetters()) > 0 }, nil, d.resubmit},
		{"purge", 1, func() bool { return len(d.deadLetters()) > 0 }, nil, d.purgeDead},
		{"off", 1, nil, nil, d.off},
		{"on", 6, d.someOff, nil, d.on},
	}
}

// step draws and makes one step that can be made now.
func (d *driver) step(t *rapid.T) {
	d.t = t
	total := 0
	var can []action
	for _, a := range d.actions() {
		if a.can == nil || a.can() {
			can = append(can, a)
			total += a.weight
		}
	}
	n := d.number("step", total)
	for _, a := range can {
		if n -= a.weight; n < 0 {
			d.touch(a.queues...)
			a.do()
			d.steps++
			return
		}
	}
}

// number draws a number below n, each as likely as the others: rapid's own ranges prefer small numbers, which would make
// rare what stands late in a list.
func (d *driver) number(label string, n int) int {
	v := 0
	for _, bit := range rapid.SliceOfN(rapid.Bool(), 10, 10).Draw(d.t, label) {
		v *= 2
		if bit {
			v++
		}
	}
	return v % n
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

// pick draws one of all, which are not empty.
func pick[V any](d *driver, label string, all []V) V { return all[d.number(label, len(all))] }

// chance is true n times in a hundred.
func (d *driver) chance(label string, n int) bool { return d.number(label, 100) < n }

// session draws the session of a message to queue.
func (d *driver) session(queue string, all ...string) string {
	if d.pure && queue == plainQueue {
		return ""
	}
	return pick(d, "session", append([]string{""}, all...))
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

func (d *driver) stalled() []*modelReader {
	return d.readers(func(r *modelReader) bool { return r.asleep && !r.closed })
}

// someOff reports whether a queue is off.
func (d *driver) someOff() bool {
	for _, q := range d.m.queues {
		if q.status != broker.QueueActive {
			return true
		}
	}
	return false
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
