package guest

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"parley/host/guest/meter"
)

// slice is how many work units a guest may use between two checkpoints: about a quarter of a millisecond. It is also how
// long a garbage collection of the host may have to wait for a spinning guest.
const slice = 500_000

// maxStack is how many bytes of call stack a guest may use, as much as a native thread has. wazero's own limit is ten times
// that for each instance, and copying the stack while it grows up to there takes longer than a short deadline.
const maxStack = 8 << 20

// callStack finds wazero's call stack behind a function, to ask for its length only. The zero Value when there is none.
func callStack(f api.Function) reflect.Value {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	stack := v.Elem().FieldByName("stack")
	if stack.Kind() != reflect.Slice {
		return reflect.Value{}
	}
	return stack
}

// Why an attempt was stopped by its host, besides the two reasons of package meter.
var (
	errReleased    = errors.New("the host takes the unit back")
	errEffectLimit = errors.New("too many staged effects")
	errHostCalls   = errors.New("too many host calls")
	errReplyLimit  = errors.New("the reply is too large")
	errStack       = errors.New("stack overflow")
	errNoAnswer    = errors.New("the broker did not answer")
)

var epoch = time.Now()

// mono is a clock for deadlines: nanoseconds since the process started. It is cheaper than time.Now.
func mono() int64 { return int64(time.Since(epoch)) }

// clock bounds what one instance does at a time: a call into it, or its own start.
type clock struct {
	meter    meter.Meter
	counter  api.MutableGlobal // units left; nil until the instance has started
	calls    reflect.Value     // the call stack of the function that runs
	parent   context.Context   // of the attempt
	plugin   *Plugin
	started  int64 // mono
	deadline int64 // mono
	excess   int64 // how much longer than promptly the broker took to answer
	lazy     lazyContext
	counted  bool // in busy
}

// busy counts the guests of this process that run.
var busy atomic.Int32

// begin starts the clock of a call that may use fuel units (0: any number) and run until deadline (0: for the plugin's
// time limit from now).
func (c *clock) begin(ctx context.Context, fuel uint64, deadline int64) {
	if !c.counted {
		c.counted = true
		busy.Add(1)
	}
	c.parent = ctx
	c.started, c.excess = mono(), 0
	if deadline == 0 {
		deadline = c.started + int64(c.plugin.opts.Limits.Time)
	}
	c.deadline = deadline
	n := c.meter.Begin(int64(fuel), slice, time.Time{})
	if c.counter != nil {
		c.counter.Set(uint64(n))
	}
}

// end returns how many units were used and how long it took.
func (c *clock) end() (fuel uint64, elapsed time.Duration) {
	c.rests()
	c.lazy.end()
	c.parent = context.Background() // the caller's is his own again
	if c.counter != nil {
		fuel = uint64(c.meter.Used(int64(c.counter.Get())))
	}
	return fuel, time.Duration(mono() - c.started)
}

// rests takes the guest off busy.
func (c *clock) rests() {
	if c.counted {
		c.counted = false
		busy.Add(-1)
	}
}

// check returns why the guest must stop now, nil when it may go on.
func (c *clock) check() error {
	switch {
	case c.plugin.stopped.Load() || c.parent.Err() != nil:
		return errReleased
	}
	switch now := mono(); {
	case now < c.deadline:
		return nil
	case now-c.excess < c.deadline:
		return errNoAnswer // the guest would have had time left
	}
	return meter.ErrDeadlineExceeded
}

const (
	// promptly is within what time the broker answers a guest; what it takes beyond that is not the guest's time.
	promptly = int64(100 * time.Millisecond)
	// fromMemory is within what time it does so without a call.
	fromMemory = int64(50 * time.Microsecond)
)

// answered notes how long the broker took for what it was asked at that time, and stops a guest whose time passed meanwhile: one that
// waits uses no work units, so no checkpoint would.
func (c *clock) answered(asked int64) {
	took := mono() - asked
	if took < fromMemory {
		return
	}
	c.excess += max(took-promptly, 0)
	if stop := c.check(); stop != nil {
		panic(stop)
	}
}

// checkpoint is what a guest calls whenever a slice is used up. A panic unwinds the guest.
func checkpoint(ctx context.Context, mod api.Module, _ []uint64) {
	in := instanceOf(ctx)
	if in.counter == nil { // it is starting, and could not be given its first slice before
		in.counter = mod.ExportedGlobal(meter.CounterExport).(api.MutableGlobal)
		in.counter.Set(in.counter.Get() + slice)
	}
	if err := in.clock.check(); err != nil {
		panic(err)
	}
	if in.calls.IsValid() && in.calls.Len() > maxStack {
		panic(errStack)
	}
	n, err := in.clock.meter.Checkpoint(int64(in.counter.Get()), time.Time{})
	if err != nil {
		panic(err)
	}
	in.counter.Set(uint64(n))
	// The Go scheduler interrupts what spins every 10 ms only, and a garbage collection of the host needs many turns. While a
	// processor is free it gets them there; giving up this one would wake the free one and move the guest to it, away from
	// its caches, which costs a third of a slice.
	if int(busy.Load()) >= runtime.GOMAXPROCS(0) {
		runtime.Gosched()
	}
}

// bytesPerUnit is how many bytes the host copies or looks at for one work unit.
const bytesPerUnit = 16

// charge makes the guest pay for n bytes of work done on its behalf. Less than leastCharge is in the price of every host call.
func (c *clock) charge(n int) {
	if n < leastCharge || c.counter == nil {
		return
	}
	c.counter.Set(c.counter.Get() - uint64(n/bytesPerUnit))
}

const leastCharge = 1024

// sleep waits for d on behalf of the guest, or stops it.
func (c *clock) sleep(d time.Duration) {
	left := time.Duration(c.deadline - mono())
	t := time.NewTimer(min(d, left))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.parent.Done():
	case <-c.plugin.stop:
	}
	if err := c.check(); err != nil {
		panic(err)
	}
}

// lazyContext is the context of the attempt for what the host does on the guest's behalf: it ends at the guest's
// deadline. Only somebody who waits for that pays for the timer.
type lazyContext struct {
	clock  *clock
	asked  atomic.Bool // somebody waited in this attempt
	mu     sync.Mutex
	timed  context.Context // nil until somebody waited; protected by mu
	cancel context.CancelFunc
}

func (l *lazyContext) context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked.Store(true)
	if l.timed == nil {
		deadline, _ := l.Deadline()
		l.timed, l.cancel = context.WithDeadline(l.clock.parent, deadline)
	}
	return l.timed
}

// Deadline implements context.Context.
func (l *lazyContext) Deadline() (time.Time, bool) {
	return time.Now().Add(time.Duration(l.clock.deadline - mono())), true
}

// Done implements context.Context.
func (l *lazyContext) Done() <-chan struct{} { return l.context().Done() }

// Err implements context.Context.
func (l *lazyContext) Err() error {
	if err := l.clock.parent.Err(); err != nil {
		return err
	}
	if mono() >= l.clock.deadline {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (l *lazyContext) Value(key any) any { return l.clock.parent.Value(key) }

func (l *lazyContext) end() {
	if !l.asked.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	l.timed, l.cancel = nil, nil
	l.asked.Store(false)
}
