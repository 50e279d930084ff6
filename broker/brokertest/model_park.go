package brokertest

import (
	"fmt"
	"slices"

	"parley/broker"
)

// bury makes msg a dead letter, which may hold up its group or end its conversation.
func (m *model) bury(msg *modelMessage) {
	msg.unit, msg.fate = nil, dead
	if msg.to != nil && msg.to.ended { // by the very unit
		return
	}
	switch q := msg.queue; {
	case q.OnDeadLetter == "park" && msg.lock() != "":
		m.seen["dead letter parks"]++
		q.blocked[msg.lock()] = append(q.blocked[msg.lock()], msg)
	case q.OnDeadLetter == "end" && msg.to != nil:
		m.seen["dead letter ends its conversation"]++
		m.end(msg.to, 127)
	}
}

// holdsUp reports whether a dead letter of s holds up its group.
func (m *model) holdsUp(s *modelSide) bool {
	return slices.ContainsFunc(s.queue.blocked[s.group], func(o *modelMessage) bool { return o.to == s })
}

// blocks reports whether msg holds up its group.
func (m *model) blocks(msg *modelMessage) bool {
	return slices.Contains(msg.queue.blocked[msg.lock()], msg)
}

// unblock lets go what the dead letters hold up for which gone is true.
func (m *model) unblock(q *modelQueue, gone func(*modelMessage) bool) {
	for g, by := range q.blocked {
		if left := slices.DeleteFunc(by, gone); len(left) > 0 {
			q.blocked[g] = left
		} else {
			delete(q.blocked, g)
		}
	}
}

// resubmit brings back a dead letter as number: in its old place when it held up its group, else at the tail.
func (m *model) resubmit(msg *modelMessage, number int64) {
	m.seen["resubmit"]++
	if m.blocks(msg) {
		m.seen["resubmit in the old place"]++
	} else {
		msg.order = number
	}
	m.unblock(msg.queue, func(o *modelMessage) bool { return o == msg })
	msg.fate, msg.number, msg.ref = waiting, number, ""
	msg.delivery, msg.poison, msg.uncertain, msg.failed, msg.guessed, msg.spared = 0, 0, 0, 0, 0, 0
}

// purge deletes the dead letters of q.
func (m *model) purge(q *modelQueue) {
	m.all(q, func(o *modelMessage) {
		if o.fate == dead {
			o.fate = done
		}
	})
	m.unblock(q, func(*modelMessage) bool { return true })
}

// holdups: exactly those groups are held up of which dead letters do so, and by these.
func (m *model) holdups(q *modelQueue, snap broker.Snapshot) error {
	want := map[string][]int64{}
	for g, by := range q.blocked {
		for _, o := range by {
			want[g] = append(want[g], o.number)
		}
		slices.Sort(want[g])
	}
	if got := fmt.Sprint(snap.Parked); got != fmt.Sprint(want) {
		return fmt.Errorf("dead letters hold up %s, want %v", got, want)
	}
	return nil
}

// resubmit brings back a dead letter: one that holds up its group, or one of a session or of nobody.
func (d *driver) resubmit() {
	var all []*modelMessage
	for _, msg := range d.deadLetters() {
		if msg.kind == broker.KindApp && (msg.to == nil || d.m.blocks(msg)) {
			all = append(all, msg)
		}
	}
	if len(all) == 0 {
		return
	}
	msg := pick(d, "dead letter", all)
	d.touch(msg.queue.Name)
	r, err := d.h.Broker.Resubmit(d.ctx, msg.queue.Name, msg.number)
	d.note("resubmit %s of %s, #%d: %v, #%d", msg.id, msg.queue.Name, msg.number, err, r.SequenceNumber)
	switch off := !msg.queue.status.CanSend(); {
	case (err != nil) != off:
		d.fail("resubmit %v to a queue that is %s: %v", msg, msg.queue.status, err)
	case !off:
		d.m.resubmit(msg, r.SequenceNumber)
	}
}

// purgeDead deletes the dead letters of a queue.
func (d *driver) purgeDead() { d.purge(d.queue("queue")) }

func (d *driver) purge(q *modelQueue) {
	n, err := d.h.Broker.Purge(d.ctx, broker.FormatDeadLetterPath(q.Name))
	d.note("purge %d dead letters of %s: %v", n, q.Name, err)
	if err != nil {
		d.fail("purge dead letters of %s: %v", q.Name, err)
	}
	d.m.purge(q)
}

// deadLetters is every dead letter.
func (d *driver) deadLetters() []*modelMessage {
	var all []*modelMessage
	for _, name := range allQueues {
		d.m.all(d.m.queues[name], func(o *modelMessage) {
			if o.fate == dead {
				all = append(all, o)
			}
		})
	}
	return all
}
