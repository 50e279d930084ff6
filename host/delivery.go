package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/broker"
)

// gather is how long the loop waits, once there is something to settle, for units that should end soon.
const gather = time.Millisecond

// renewShare is the share of the lease after which a reader without a turn renews it.
const renewShare = 0.4

// errLeaseOver is the cause of a guest's end when its reader lost the lease.
var errLeaseOver = fmt.Errorf("host: the reader's lease ended: %w", broker.ErrLockLost)

// delivery is one open broker.Reader with its slots: the loop that settles what finished and receives what comes next.
// It never waits for a slow unit: what finished is settled, and what waits is received, without it.
type delivery struct {
	r      *reader
	rd     broker.Reader
	slots  *slots
	guests context.Context // ends what runs
	cut    context.CancelCauseFunc
	timer  *time.Timer

	hungry    bool      // something may be deliverable: the last receive was not empty
	received  bool      // something was ever received
	alone     bool      // offer empty slots only, one unit each
	off       bool      // the queue is off: offer nothing
	stopping  bool      // retired: offer nothing
	asked     bool      // another reader was asked to look since the last turn
	contact   time.Time // when the last call began that kept the lease alive
	renewal   time.Time // when the lease is to be renewed if no turn did
	gatherEnd time.Time // until then fast units are waited for
	idleSince time.Time

	req  broker.TurnRequest
	sent []finished // what req settles

	runs  int64        // how often the loop ran units itself
	role  atomic.Int64 // the number of such a run while it lasts and the loop is not taken over; else 0
	watch *time.Timer  // has another goroutine go on with the loop when a run takes long
	over  chan outcome // holds one
}

// outcome is how a session ended.
type outcome struct {
	end ending
	err error
}

func newDelivery(r *reader, rd broker.Reader) *delivery {
	now := time.Now()
	d := &delivery{r: r, rd: rd, hungry: true, idleSince: now, timer: time.NewTimer(time.Hour)}
	d.keptAlive(now)
	d.guests, d.cut = context.WithCancelCause(r.m.host.guests)
	runs := newRuns(r.m, rd.Name(), rd.Slots())
	d.slots = newSlots(&r.m.host.crew, rd.Slots(), &r.m.pace, func(slot int, u *broker.Unit) finished {
		return runs.run(d.guests, slot, u)
	})
	d.over = make(chan outcome, 1)
	d.watch = time.AfterFunc(time.Hour, d.takeOver)
	return d
}

// run is the loop of d, whoever goes on with it, and what it ran itself.
func (d *delivery) run() (ending, error) {
	defer d.watch.Stop()
	d.loop()
	o := <-d.over
	return o.end, o.err
}

// loop goes on until the session ends, or another goroutine has taken over.
func (d *delivery) loop() {
	for {
		end, over, err := d.once()
		if over || err != nil {
			d.timer.Stop()
			if end == endLost || end == endFailed {
				d.cut(errLeaseOver) // also what the goroutine runs that the loop was taken from
			}
			d.over <- outcome{end, err}
			return
		}
		if !d.runQueued() {
			return
		}
	}
}

// runQueued runs the fast units that were handed out, and reports false when another goroutine took over the loop meanwhile.
//
// The loop is a role, not a goroutine: handing a unit of microseconds to a worker and being woken again costs more than the
// unit does. When one takes long, another goroutine goes on with the loop and this one is the unit's worker.
func (d *delivery) runQueued() bool {
	if !d.slots.mine() {
		return true
	}
	d.runs++
	run := d.runs
	d.role.Store(run)
	d.watch.Reset(time.Until(d.gatherEnd))
	d.slots.serveMine(func() bool { return d.role.Load() == run })
	if !d.role.CompareAndSwap(run, 0) {
		return false // watch is now the other goroutine's
	}
	d.watch.Stop()
	return true
}

// takeOver has another goroutine go on with the loop if units run inside of it.
func (d *delivery) takeOver() {
	if run := d.role.Load(); run != 0 && d.role.CompareAndSwap(run, 0) {
		d.r.m.host.crew.start(d.loop)
	}
}

// step is what the loop does next.
type step uint8

const (
	stepWait step = iota
	stepTurn
	stepRenew
	stepLeave
)

// once makes one step. over says that the session has ended, as end.
func (d *delivery) once() (end ending, over bool, err error) {
	now := time.Now()
	if !d.stopping && d.r.stopped() {
		d.retire()
	}
	switch v := d.look(now); d.decide(v, now) {
	case stepTurn:
		return d.turn()
	case stepRenew:
		return d.renew(now)
	case stepLeave:
		switch {
		case d.off:
			return endOff, true, nil
		case d.stopping || d.r.m.leave(d.r):
			return endIdle, true, nil
		}
		d.hungry = true
	default:
		d.wait(v, now)
	}
	return 0, false, nil
}

// look returns the state of the slots, after hurrying those that took longer than the loop waits for.
func (d *delivery) look(now time.Time) view {
	window := d.r.m.pace.window()
	v := d.slots.look(window, d.alone)
	if v.fast > 0 && !now.Before(d.gatherEnd) {
		d.slots.hurry()
		v = d.slots.look(window, d.alone)
	}
	if d.off || d.stopping {
		v.free = 0
	}
	d.r.room.Store(v.free > 0)
	switch {
	case v.unfinished > 0 || v.done > 0 || d.hungry && d.received:
		d.r.phase.Store(int32(phaseReceiving))
	case !d.hungry:
		d.r.phase.Store(int32(phaseIdle))
	}
	return v
}

// decide is the rule of the loop.
func (d *delivery) decide(v view, now time.Time) step {
	gathered := v.fast == 0 || !now.Before(d.gatherEnd)
	held := v.unfinished > 0 || v.done > 0
	switch {
	case gathered && (v.done > 0 || d.hungry && v.free > 0):
		return stepTurn
	case held && !now.Before(d.renewal):
		return stepRenew
	case !held && (d.off || d.stopping):
		return stepLeave
	case !held && !d.hungry && now.Sub(d.idleSince) >= d.linger():
		return stepLeave
	}
	return stepWait
}

// linger is how long d stays open idle. A probe that never found anything does not.
func (d *delivery) linger() time.Duration {
	if d.r.probe && !d.received {
		return 0
	}
	return d.r.m.host.cfg.Linger
}

// wait returns when something happened that may change the decision.
func (d *delivery) wait(v view, now time.Time) {
	switch {
	case v.fast > 0 && now.Before(d.gatherEnd):
		d.timer.Reset(d.gatherEnd.Sub(now))
		d.slots.listen(toAll)
	case v.unfinished > 0:
		d.askForMore(v)
		d.timer.Reset(d.renewal.Sub(now))
		d.slots.listen(toAny)
	default:
		d.timer.Reset(d.idleSince.Add(d.linger()).Sub(now))
	}
	stop := d.r.stop
	if d.stopping {
		stop = nil
	}
	select {
	case <-d.slots.bell:
		d.gatherEnd = time.Now().Add(gather)
	case <-d.r.poked:
		d.hungry = true
	case <-d.timer.C:
	case <-stop:
		d.retire()
	}
}

// retire has d finish what runs, and give back the rest.
func (d *delivery) retire() {
	d.stopping = true
	d.slots.release()
}

// askForMore has another reader look, once a turn, when every slot of d is taken for longer: nobody knows whether more
// waits, and while nobody looks no arrival is announced.
func (d *delivery) askForMore(v view) {
	if d.hungry && v.free == 0 && !d.asked && !d.off && !d.stopping {
		d.asked = true
		d.r.m.more(d.r)
	}
}

// keptAlive notes that a call which began at start kept the lease alive.
func (d *delivery) keptAlive(start time.Time) {
	d.contact = start
	d.renewal = start.Add(time.Duration(float64(d.r.m.host.cfg.Lease) * renewShare))
}

// turn settles what finished, receives, and hands out.
func (d *delivery) turn() (end ending, over bool, err error) {
	d.compose()
	ctx, cancel := d.callContext()
	defer cancel()
	start := time.Now()
	reply, err := d.rd.Turn(ctx, d.req)
	if err != nil {
		return d.broken(err)
	}
	now := time.Now()
	d.keptAlive(start)
	d.r.m.host.clock.saw(reply.Now, start, now)
	d.report(reply.Results, start, now)
	d.digest(&reply, now)
	if len(reply.Units) > 0 && !d.slots.hand(reply.Units, d.req.Empty == len(d.req.Free)) {
		return endFailed, true, fmt.Errorf("host: reader %s was handed a unit for a slot it does not have", d.rd.Name())
	}
	d.gatherEnd = now.Add(gather)
	return 0, false, nil
}

// compose fills the request.
func (d *delivery) compose() {
	offer := !d.off && !d.stopping
	d.sent, d.req.Free, d.req.Empty = d.slots.take(d.sent, d.req.Free, d.r.m.pace.window(), offer, d.alone)
	d.req.Top = d.r.m.top
	d.req.Settle = d.req.Settle[:0]
	for i := range d.sent {
		d.req.Settle = append(d.req.Settle, d.sent[i].settlement)
	}
}

// callContext gives a call as long as the lease: a failover must not turn what ran into failures. Once the host shuts
// down it is settleLimit.
func (d *delivery) callContext() (context.Context, context.CancelFunc) {
	h := d.r.m.host
	if d.stopping {
		return context.WithTimeout(context.Background(), settleLimit)
	}
	return context.WithTimeout(h.calls, h.cfg.Lease)
}

// digest takes over what a reply says about the queue.
func (d *delivery) digest(reply *broker.TurnReply, now time.Time) {
	m, offered, got := d.r.m, len(d.req.Free), len(reply.Units)
	m.count.turn(got, reply.Waiting)
	d.alone = reply.Alone
	d.asked = false
	if reply.Off && !d.off {
		d.off = true
		d.slots.release()
	}
	if !reply.NextDue.IsZero() {
		m.host.keeper.due(reply.NextDue)
	}
	switch {
	case got > 0:
		d.received, d.hungry = true, true
	case reply.Again, reply.Alone && d.req.Empty < offered:
		d.hungry = true // a unit that must run alone was not handed out because more than empty slots were offered
	case offered > 0:
		if d.hungry {
			m.sawEmpty(now)
		}
		d.hungry = false
	}
	d.idleSince = now
	if got > 0 && got == offered && reply.Waiting > 0 {
		m.more(d.r)
	}
}

// renew prolongs the lease. An error is no reason to give up what runs before the lease is over.
func (d *delivery) renew(now time.Time) (end ending, over bool, err error) {
	ctx, cancel := d.callContext()
	defer cancel()
	lease := d.r.m.host.cfg.Lease
	err = d.rd.Renew(ctx)
	switch {
	case err == nil:
		d.keptAlive(now)
	case errors.Is(err, broker.ErrLockLost), time.Since(d.contact) >= lease:
		return endLost, true, err
	default:
		d.r.m.failed("the lease could not be renewed yet", err)
		d.renewal = time.Now().Add(lease / 10)
	}
	return 0, false, nil
}

// broken ends the session after an error of a call.
func (d *delivery) broken(err error) (ending, bool, error) {
	switch {
	case errors.Is(err, broker.ErrLockLost):
		return endLost, true, err
	case errors.Is(err, broker.ErrQueueDisabled):
		return endOff, true, nil
	}
	return endFailed, true, err
}

// abandon ends what still runs, waits for it, and reports what was never settled.
func (d *delivery) abandon(end ending) {
	d.r.room.Store(false)
	d.slots.close()
	d.cut(nil)
	left, _, _ := d.slots.take(nil, nil, 0, false, false)
	d.reportLost(append(d.sent, left...))
}
