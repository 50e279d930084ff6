package brokertest

import (
	"fmt"
	"slices"
	"time"

	"parley/broker"
)

// settle does settlement st of u and returns what it must lead to.
func (m *model) settle(u *modelUnit, st broker.Settlement) broker.Consequence {
	u.drop()
	switch st.Verdict {
	case broker.VerdictCommit:
		return m.commit(u, st.Effects)
	case broker.VerdictRollback:
		return m.rollback(u, st.Pause)
	case broker.VerdictDeadLetter:
		for _, msg := range u.msgs {
			m.bury(msg)
		}
		return broker.DeadLettered
	default:
		m.giveBack(u)
		return broker.Released
	}
}

// drop takes u out of its slot.
func (u *modelUnit) drop() {
	slot := &u.reader.slots[u.unit.Slot]
	*slot = slices.DeleteFunc(*slot, func(o *modelUnit) bool { return o == u })
}

// giveBack puts the messages of u back, uncounted, and reports whether any waits then: of two timers of a conversation that
// nobody received one is enough (SM-11).
func (m *model) giveBack(u *modelUnit) (waits bool) {
	for _, msg := range u.msgs {
		if msg.fate != held {
			continue
		}
		msg.unit, msg.fate = nil, waiting
		if msg.kind == broker.KindDialogTimer && m.otherTimer(msg) {
			m.seen["two timers are one"]++
			msg.fate = dropped
		}
		waits = waits || msg.fate == waiting
	}
	return waits
}

// otherTimer reports whether a timer of msg's conversation other than msg waits.
func (m *model) otherTimer(msg *modelMessage) bool {
	return slices.ContainsFunc(m.system, func(o *modelMessage) bool {
		return o != msg && o.to == msg.to && o.kind == msg.kind && o.fate == waiting
	})
}

func (m *model) commit(u *modelUnit, effects []broker.Effect) broker.Consequence {
	switch m.refuses(u, effects) {
	case locked:
		m.seen["commit refused: locked"]++
		m.giveBack(u)
		return broker.Refused
	case illegal:
		m.seen["commit refused: illegal"]++
		m.rollback(u, -1)
		return broker.Refused
	}
	dead := singles(u, effects)
	for _, msg := range u.msgs {
		if !slices.Contains(dead, msg) {
			msg.unit, msg.fate = nil, done
		}
	}
	for _, e := range effects {
		m.effect(u, e)
	}
	for _, msg := range dead { // after all else that the unit does
		m.seen["single dead letter"]++
		if len(u.msgs) > len(dead) {
			m.seen["single dead letter of several"]++
		}
		m.bury(msg)
	}
	return broker.Committed
}

// singles is the messages of u that effects dead-letter, in their order.
func singles(u *modelUnit, effects []broker.Effect) (dead []*modelMessage) {
	for _, e := range effects {
		if e.Kind == broker.EffectDeadLetter && !slices.Contains(dead, u.msgs[e.Index]) {
			dead = append(dead, u.msgs[e.Index])
		}
	}
	return dead
}

// refusal says why a commit is refused.
type refusal uint8

const (
	agreed  refusal = iota
	locked          // a reader holds a group that an effect would change: no fault of the unit
	illegal         // an effect cannot be done: the unit has failed
)

// refuses says whether one of the effects cannot be done. What other units of the same turn hold is held for all of it.
func (m *model) refuses(u *modelUnit, effects []broker.Effect) refusal {
	foreign := func(group string) bool { return group != u.unit.Group && m.busy[group] }
	parks, moved := map[*modelSide]bool{}, map[*modelSide]bool{} // by effects before
	for _, e := range effects {
		s := m.side(e.Conversation)
		if e.Kind == broker.EffectDeadLetter && u.reader.queue.OnDeadLetter == "park" {
			if to := u.msgs[e.Index].to; to != nil {
				if parks[to] = true; moved[to] {
					m.seen["dead letter of what the unit moved"]++
					return illegal
				}
			}
		}
		switch {
		case s == nil:
		case s.ended, e.Kind == broker.EffectSend && !s.canSend():
			return illegal
		case e.Kind != broker.EffectSend && foreign(s.group), e.Kind == broker.EffectMove && foreign("g:"+e.Group):
			return locked
		case e.Kind == broker.EffectMove && "g:"+e.Group != s.group && (m.holdsUp(s) || parks[s]):
			m.seen["move of a parked conversation"]++
			return illegal
		case e.Kind == broker.EffectMove:
			moved[s] = "g:"+e.Group != s.group
		}
	}
	return agreed
}

// hold notes which groups readers of q hold as a turn begins.
func (m *model) hold(q *modelQueue) {
	m.busy = map[string]bool{}
	for _, r := range q.readers {
		for _, slot := range r.slots {
			for _, u := range slot {
				m.busy[u.unit.Group] = true
			}
		}
	}
}

func (m *model) effect(u *modelUnit, e broker.Effect) {
	s := m.side(e.Conversation)
	m.seen[fmt.Sprintf("effect %d", e.Kind)]++
	switch e.Kind {
	case broker.EffectSend:
		m.say(s, e.Message.MessageID)
	case broker.EffectSendTo:
		m.send(m.queues[e.Queue], u.reader.queue, e.Message.MessageID, e.Message.SessionID)
	case broker.EffectEnd:
		m.end(s, e.Code)
	case broker.EffectMove:
		m.move(s, "g:"+e.Group)
	case broker.EffectTimer:
		s.timer = m.now.Add(e.After)
	case broker.EffectCancelTimer:
		s.timer = zeroTime
	}
}

// side returns the side with that handle, or nil.
func (m *model) side(handle string) *modelSide {
	if handle == "" {
		return nil
	}
	for _, s := range m.sides {
		if s.handle == handle {
			return s
		}
	}
	return nil
}

// rollback counts a failure of u and decides what follows: dead letter before OFF, OFF before a pause.
func (m *model) rollback(u *modelUnit, wait time.Duration) broker.Consequence {
	q := u.reader.queue
	m.seen["rollback"]++
	if u.uncertain() {
		m.seen["rollback of an uncertain unit"]++
	}
	for _, msg := range u.msgs {
		msg.failed++
	}
	alive, trip := m.count(u, 0)
	waits := m.giveBack(u)
	switch {
	case trip && m.trip(q):
		return broker.QueueTurned
	case trip:
		return broker.RolledBack
	case alive == 0:
		return broker.DeadLettered
	}
	if wait < 0 {
		wait = q.Retry.Initial // the random test uses a multiplier of 1 and no jitter
	}
	if wait > 0 && waits {
		m.pause(u, m.now.Add(wait))
	}
	return broker.RolledBack
}

// count adds one failure to every message of u, and those that were uncertain when convert is set. It returns how many
// did not become dead letters, and whether one of those is at the limit. A unit of several carries none to a limit.
func (m *model) count(u *modelUnit, convert int) (alive int, trip bool) {
	q, several := u.reader.queue, len(u.msgs) > 1
	if several {
		m.seen["failure of a unit of several"]++
	}
	for _, msg := range u.msgs {
		n := 1
		if convert > 0 {
			m.seen["uncertain deaths become certain"] += msg.uncertain
			n, msg.guessed, msg.uncertain = n+msg.uncertain, msg.guessed+msg.uncertain, 0
		}
		msg.delivery += n
		if q.Poison.On {
			msg.poison += n
		}
		if several {
			msg.spared++
			alive++
			continue
		}
		if msg.delivery >= q.MaxDelivery {
			m.seen["dead letter at the limit"]++
			m.bury(msg)
			continue
		}
		alive++
		trip = trip || q.Poison.On && msg.poison >= q.Poison.Rollbacks
	}
	return alive, trip
}

// trip turns q OFF and reports whether it was not OFF before.
func (m *model) trip(q *modelQueue) bool {
	if q.status != broker.QueueActive {
		return false
	}
	q.status = broker.QueueOff
	q.trips++
	m.seen["poison turns a queue off"]++
	return true
}

func (m *model) pause(u *modelUnit, due time.Time) {
	m.seen["pause"]++
	if u.unit.Group != "" {
		u.reader.queue.parked[u.unit.Group] = due
		return
	}
	for _, msg := range u.msgs {
		if msg.fate == waiting {
			msg.fate, msg.due = paused, due
		}
	}
}

// on turns q ON: poison counts start from 0, unless it was on already.
func (m *model) on(q *modelQueue) {
	if q.status == broker.QueueActive {
		return
	}
	q.status = broker.QueueActive
	m.all(q, func(msg *modelMessage) { msg.poison = 0 })
}

// reap gives back what the expired reader r held and counts what died in it: exactly where one unit was announced for a
// slot, as uncertain where there were several.
func (m *model) reap(r *modelReader) {
	trip := false
	for _, slot := range r.slots {
		for i, u := range slot {
			if i == 0 {
				for _, msg := range u.msgs {
					msg.failed++
				}
			}
			m.seen["death in a unit"]++
			if len(slot) > 1 {
				m.seen["uncertain death"]++
				for _, msg := range u.msgs {
					msg.uncertain++
				}
			} else if _, t := m.count(u, 1); t {
				trip = true
			}
			m.giveBack(u)
			for _, msg := range u.msgs {
				msg.reaped = true
			}
		}
	}
	m.forget(r)
	if trip && m.trip(r.queue) {
		r.queue.reaped = true
	}
}

// release gives back what r held, uncounted.
func (m *model) release(r *modelReader) {
	for _, slot := range r.slots {
		for _, u := range slot {
			m.giveBack(u)
		}
	}
	m.forget(r)
}

func (m *model) forget(r *modelReader) {
	r.slots, r.closed = make([][]*modelUnit, len(r.slots)), true
	r.queue.readers = slices.DeleteFunc(r.queue.readers, func(o *modelReader) bool { return o == r })
}
