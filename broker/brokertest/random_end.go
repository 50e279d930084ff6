package brokertest

import (
	"time"

	"parley/broker"
)

// finish lets everything go well from here on, and checks that everything ends (invariant 9).
func (d *driver) finish() {
	for _, deliver := range d.late {
		deliver()
	}
	d.late = nil
	d.look()
	for _, r := range d.readers(func(*modelReader) bool { return true }) {
		r.asleep, r.closed = true, true
	}
	for _, name := range allQueues {
		q := d.m.queues[name]
		if err := d.h.Broker.SetStatus(d.ctx, name, broker.QueueActive); err != nil {
			d.fail("on %s: %v", name, err)
		}
		d.m.on(q)
	}
	d.expire()
	for round := 0; d.busy() || round < 3; round++ {
		if round == 60 {
			d.fail("it never comes to rest: %v", d.remaining())
		}
		d.tidy()
	}
	for _, s := range d.sides(func(s *modelSide) bool { return !s.ended }) {
		if err := d.h.Broker.End(d.ctx, s.handle, broker.Ending{}, 0); err != nil {
			d.fail("end %s: %v", s.handle, err)
		}
		d.m.end(s, 0)
	}
	for range 2 {
		d.tidy()
	}
	d.nothingLeft()
}

// tidy makes one round: housekeeping, and a reader on each queue that commits all it gets and goes.
func (d *driver) tidy() {
	d.pass(5 * time.Second)
	if _, err := d.h.Broker.Keep(d.ctx); err != nil {
		d.fail("keep: %v", err)
	}
	for _, r := range d.readers(d.expired) {
		d.m.reap(r)
	}
	d.touch(allQueues...)
	d.look()
	for _, name := range allQueues {
		if q := d.m.queues[name]; len(q.blocked) > 0 {
			d.purge(q)
		}
		d.serve(d.m.queues[name])
	}
	d.touch(allQueues...)
	d.look()
}

// serve commits everything that q can deliver.
func (d *driver) serve(q *modelQueue) {
	if !q.status.CanReceive() { // what died with its reader turned it off
		if err := d.h.Broker.SetStatus(d.ctx, q.Name, broker.QueueActive); err != nil {
			d.fail("on %s: %v", q.Name, err)
		}
		d.m.on(q)
	}
	br, err := d.h.Broker.OpenReader(d.ctx, q.Name, broker.ReaderOptions{Slots: 4, Limit: 1000})
	if err != nil || br == nil {
		d.fail("open a reader on %s: %v", q.Name, err)
	}
	r := d.m.register(q, br)
	for range 1000 {
		var req broker.TurnRequest
		for i, slot := range r.slots {
			for _, u := range slot {
				req.Settle = append(req.Settle, commit(u.unit))
			}
			req.Free = append(req.Free, i)
		}
		req.Top, req.Empty = 4, len(req.Free)
		d.played(r, req, 0)
		if len(req.Settle) == 0 && d.held(r) == 0 {
			break
		}
	}
	if n := d.held(r); n > 0 {
		d.fail("%s never gets empty: %v", q.Name, d.remaining())
	}
	if err := br.Close(d.ctx); err != nil {
		d.fail("close: %v", err)
	}
	d.m.release(r)
}

func (d *driver) held(r *modelReader) (n int) {
	for _, slot := range r.slots {
		n += len(slot)
	}
	return n
}

// remaining is every message that has not ended.
func (d *driver) remaining() []string {
	var all []string
	for _, q := range d.m.queues {
		d.m.all(q, func(o *modelMessage) {
			// Nobody waits for what goes to a side that ended, nor for an Error to one that never heard of the conversation.
			moot := o.fate == flying && o.to != nil && (o.to.ended || o.kind == broker.KindError && o.to.handle == "")
			if o.fate != done && o.fate != dropped && o.fate != dead && !moot {
				all = append(all, q.Name+": "+o.String())
			}
		})
	}
	return all
}

func (d *driver) busy() bool {
	armed := d.sides(func(s *modelSide) bool { return !s.timer.IsZero() })
	return len(d.remaining())+len(armed) > 0
}

// nothingLeft checks that nothing but dead letters is kept of anything.
func (d *driver) nothingLeft() {
	for _, name := range allQueues {
		snap, err := d.h.Broker.Snapshot(d.ctx, name)
		if err != nil {
			d.fail("snapshot of %s: %v", name, err)
		}
		left := len(snap.Locks) + len(snap.Ready) + len(snap.Retry) + len(snap.Readers) + len(snap.Timers) + len(snap.Conversations)
		for _, m := range snap.Messages {
			if m.Place != broker.PlaceDead {
				left++
			}
		}
		if left+snap.Attempts > 0 {
			d.fail("%s has something left: %+v", name, snap)
		}
		trips := 0
		err = d.h.Broker.Events(d.ctx, false, func(e broker.Event) bool {
			if e.Queue == name && e.Type == "queue_disabled" {
				trips++
			}
			return true
		})
		if err != nil || trips != d.m.queues[name].trips {
			d.fail("%s has %d events of being disabled (%v), want %d", name, trips, err, d.m.queues[name].trips)
		}
	}
}
