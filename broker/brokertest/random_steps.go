package brokertest

import (
	"errors"
	"time"

	"parley/broker"
)

// queue draws a queue, which the step changes.
func (d *driver) queue(label string) *modelQueue {
	name := pick(d, label, []string{workQueue, workQueue, plainQueue, homeQueue})
	d.touch(name)
	return d.m.queues[name]
}

// send sends plain messages and messages of sessions from outside, perhaps over a bad line.
func (d *driver) send() {
	q := d.queue("queue")
	n := 1 + d.number("messages", 3)
	msgs := make([]broker.Outgoing, n)
	for i := range msgs {
		msgs[i] = message(d.name())
		msgs[i].SessionID = d.session(q.Name, "a", "b")
	}
	if d.chance("lost reply", 10) {
		d.h.LoseReply(0, 1)
	}
	rs, err := d.h.Broker.Send(d.ctx, q.Name, msgs...)
	for _, m := range msgs {
		d.note("send %s (session %q) to %s: %v", m.MessageID, m.SessionID, q.Name, err)
	}
	d.h.Calm()
	if !q.status.CanSend() {
		if !errors.Is(err, broker.ErrQueueDisabled) {
			d.fail("send to %s, which is off: %v", q.Name, err)
		}
		return
	}
	if err != nil || len(rs) != n {
		d.fail("send to %s: %v, %d receipts", q.Name, err, len(rs))
	}
	for i, m := range msgs {
		d.m.send(q, nil, m.MessageID, m.SessionID)
		d.m.msgs[m.MessageID].number = rs[i].SequenceNumber
		d.m.msgs[m.MessageID].order = rs[i].SequenceNumber
	}
}

// begin begins a dialog from home to work, in a group of its own or in that of another one.
func (d *driver) begin() {
	dialog := broker.Dialog{From: homeSvc, To: workSvc}
	if peers := d.sides(func(s *modelSide) bool { return s.initiator && !s.ended }); len(peers) > 0 && d.chance("join", 30) {
		dialog.Group = pick(d, "group", peers).group[len("g:"):]
	}
	e, err := d.h.Broker.Begin(d.ctx, dialog)
	if err != nil {
		d.fail("begin: %v", err)
	}
	d.note("begin %s in %s", e.Handle, e.Group)
	s := &modelSide{queue: d.m.queues[homeQueue], initiator: true, handle: e.Handle, group: "g:" + e.Group}
	s.far = &modelSide{queue: d.m.queues[workQueue], far: s}
	d.m.sides = append(d.m.sides, s, s.far)
}

// say sends on a conversation from outside.
func (d *driver) say() {
	ended := d.chance("perhaps an ended side", 10)
	sides := d.sides(func(s *modelSide) bool { return ended || s.canSend() })
	if len(sides) == 0 {
		return
	}
	s := pick(d, "side", sides)
	id := d.name()
	_, err := d.h.Broker.SendOn(d.ctx, s.handle, message(id))
	d.note("say %s on %s: %v", id, s.handle, err)
	switch {
	case s.ended && errors.Is(err, broker.ErrUnknownConversation), s.ended && errors.Is(err, broker.ErrConversationEnded):
	case !s.ended && !s.canSend() && errors.Is(err, broker.ErrConversationEnded):
	case s.canSend() && err == nil:
		d.m.say(s, id)
	default:
		d.fail("send on %s (ended %v, erred %v, left %v): %v", s.handle, s.ended, s.erred, s.left, err)
	}
}

// end ends a side from outside.
func (d *driver) end() {
	s := pick(d, "side", d.sides(func(s *modelSide) bool { return !s.ended }))
	e := broker.Ending{}
	if d.chance("error", 40) {
		e = broker.Ending{Code: 127, Text: "enough"}
	}
	err := d.h.Broker.End(d.ctx, s.handle, e, 0)
	d.note("end %s code %d: %v", s.handle, e.Code, err)
	if d.m.holder(s.queue, s.group) != nil {
		if !errors.Is(err, broker.ErrGroupLocked) {
			d.fail("end %s, which is held: %v", s.handle, err)
		}
		return
	}
	if err != nil {
		d.fail("end %s: %v", s.handle, err)
	}
	d.m.end(s, e.Code)
}

// open opens a reader.
func (d *driver) open() {
	q, slots := d.queue("queue"), 1+d.number("slots", 3)
	b := d.h.Broker
	r, err := b.OpenReader(d.ctx, q.Name, broker.ReaderOptions{Slots: slots, Limit: 1000})
	if !q.status.CanReceive() {
		if !errors.Is(err, broker.ErrQueueDisabled) {
			d.fail("open a reader on %s, which is off: %v", q.Name, err)
		}
		return
	}
	d.note("open %d slots on %s", slots, q.Name)
	if err != nil || r == nil || r.Slots() != slots {
		d.fail("open a reader on %s: %v, %v", q.Name, r, err)
	}
	d.note("  it is %s", r.Name())
	d.m.register(q, r)
}

// kill ends a host: its reader is never heard of again.
func (d *driver) kill() {
	r := pick(d, "reader", d.awake())
	d.note("kill %s", r.r.Name())
	r.asleep = true
	r.closed = true // never to wake
}

// stall stops a host for a while.
func (d *driver) stall() {
	r := pick(d, "reader", d.awake())
	d.note("stall %s", r.r.Name())
	r.asleep = true
}

// wake lets a stalled host go on. It may find that it is too late.
func (d *driver) wake() {
	r := pick(d, "reader", d.stalled())
	d.note("wake %s", r.r.Name())
	r.asleep = false
}

// expired reports whether the lease of r has ended.
func (d *driver) expired(r *modelReader) bool { return r.leaseEnd.Before(d.m.now) }

// lost checks that a call of an expired reader was refused, and ends its play.
func (d *driver) lost(r *modelReader, err error) {
	d.m.seen["call of an expired reader"]++
	if !errors.Is(err, broker.ErrLockLost) {
		d.fail("a call of %s, whose lease has ended: %v", r.r.Name(), err)
	}
	r.asleep, r.closed = true, true
}

// closeReader closes a reader: everything it holds goes back uncounted.
func (d *driver) closeReader() {
	r := pick(d, "reader", d.awake())
	d.note("close %s", r.r.Name())
	d.touch(r.queue.Name)
	err := r.r.Close(d.ctx)
	if d.expired(r) {
		if err != nil {
			d.lost(r, err)
		}
		r.asleep, r.closed = true, true
		return
	}
	if err != nil {
		d.fail("close %s: %v", r.r.Name(), err)
	}
	d.m.release(r)
}

// wait lets a little time pass. Readers that are awake renew.
func (d *driver) wait() {
	ms := pick(d, "milliseconds", []int{1, 500, 1000, 2001, 4000})
	d.pass(time.Duration(ms) * time.Millisecond)
}

// expire lets so much time pass that sleeping readers lose their leases.
func (d *driver) expire() {
	d.pass(broker.DefaultLease * 6 / 10)
	d.pass(broker.DefaultLease * 6 / 10)
}

func (d *driver) pass(by time.Duration) {
	d.note("%v passes", by)
	d.touch(allQueues...)
	d.h.Advance(by)
	d.m.now = d.m.now.Add(by)
	for _, r := range d.awake() {
		err := r.r.Renew(d.ctx)
		switch {
		case d.expired(r):
			d.lost(r, err)
		case err != nil:
			d.fail("renew %s: %v", r.r.Name(), err)
		default:
			r.leaseEnd = d.m.now.Add(broker.DefaultLease)
		}
	}
}

// keep makes one pass of housekeeping.
func (d *driver) keep() {
	if d.chance("lost reply", 10) {
		d.h.LoseReply(d.number("call", 3+1), 1)
		_, _ = d.h.Broker.Keep(d.ctx) // it may say that the connection broke; then the next pass does the rest
		d.h.Calm()
	}
	rep, err := d.h.Broker.Keep(d.ctx)
	d.note("keep: %d transmitted, %d promoted, %d died", rep.Transmitted, rep.Promoted, len(rep.DeadReaders))
	if err != nil {
		d.fail("keep: %v", err)
	}
	for _, r := range d.readers(d.expired) {
		d.m.reap(r)
	}
	_ = rep
}

// off and on switch a queue.
func (d *driver) off() { d.set(d.queue("queue"), broker.QueueOff) }

func (d *driver) on() {
	var off []*modelQueue
	for _, name := range allQueues {
		if q := d.m.queues[name]; q.status != broker.QueueActive {
			off = append(off, q)
		}
	}
	d.set(pick(d, "queue", off), broker.QueueActive)
}

func (d *driver) set(q *modelQueue, st broker.QueueStatus) {
	d.touch(q.Name)
	if err := d.h.Broker.SetStatus(d.ctx, q.Name, st); err != nil {
		d.fail("set %s %s: %v", q.Name, st, err)
	}
	d.note("set %s %s", q.Name, st)
	if st == broker.QueueActive {
		d.m.on(q)
	}
	q.status = st
}

// deliver lets a call arrive that was on the wire all the time.
func (d *driver) deliver() {
	for _, deliver := range d.late {
		happened := deliver()
		if happened {
			d.m.seen["late call"]++
		}
		d.note("a late call arrives: %v", happened)
	}
	d.late = nil
}
