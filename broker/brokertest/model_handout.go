package brokertest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"parley/broker"
)

// handOut checks the units that a turn of r handed out for req, and gives them to r. It returns the first rule that is
// broken.
func (m *model) handOut(r *modelReader, req broker.TurnRequest, units []*broker.Unit) error {
	if len(units) > 0 && !r.queue.status.CanReceive() {
		return fmt.Errorf("handed out %v while the queue is off", names(units))
	}
	room := map[int]int{}
	for _, s := range req.Free {
		room[s]++
	}
	for _, u := range units {
		if room[u.Slot]--; room[u.Slot] < 0 {
			return fmt.Errorf("%v was put into slot %d, which was not offered", unitNames(u), u.Slot)
		}
		if err := m.take(r, u, req.Top); err != nil {
			return fmt.Errorf("unit %v: %w", unitNames(u), err)
		}
	}
	return nil
}

// take checks one unit and gives it to r.
func (m *model) take(r *modelReader, u *broker.Unit, top int) error {
	mu := &modelUnit{unit: u, reader: r}
	if len(u.Messages) == 0 || len(u.Messages) > top || u.Group == "" && len(u.Messages) > 1 {
		return fmt.Errorf("it has %d messages", len(u.Messages))
	}
	if m.holder(r.queue, u.Group) != nil {
		return errors.New("its group is held already")
	}
	if by := r.queue.blocked[u.Group]; len(by) > 0 {
		return fmt.Errorf("its group is held up by %v", by)
	}
	if due, ok := r.queue.parked[u.Group]; ok && due.After(m.now) {
		return fmt.Errorf("its group is parked until %v", due)
	}
	uncertain := false
	for _, got := range u.Messages {
		msg, err := m.identify(r.queue, got, u.Group)
		if err == nil {
			err = m.legal(mu, msg, got)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name(got), err)
		}
		if msg.blamed() && len(u.Messages) > 1 {
			return fmt.Errorf("%s failed before and is not alone", name(got))
		}
		uncertain = uncertain || msg.uncertain > 0
		msg.fate, msg.unit = held, mu
		mu.msgs = append(mu.msgs, msg)
	}
	delete(r.queue.parked, u.Group)
	m.seen["unit"]++
	switch {
	case len(mu.msgs) > 1:
		m.seen["unit of several messages"]++
	case mu.msgs[0].spared > 0:
		m.seen["alone after a unit of several failed"]++
	}
	slot := r.slots[u.Slot]
	if len(slot) > 0 && (uncertain || slot[0].uncertain()) {
		return errors.New("an uncertain unit shares its slot")
	}
	r.slots[u.Slot] = append(slot, mu)
	return m.ordered(mu)
}

// legal checks that msg may be handed out in u as got.
func (m *model) legal(u *modelUnit, msg *modelMessage, got broker.Message) error {
	q := u.reader.queue
	if msg.fate == flying {
		if err := m.arrive(msg); err != nil {
			return err
		}
	}
	switch {
	case msg.fate == paused && !msg.due.After(m.now):
	case msg.fate != waiting:
		return fmt.Errorf("handed out although it is %v", msg.fate)
	}
	if msg.lock() != u.unit.Group {
		return fmt.Errorf("it belongs to %q, not to %q", msg.lock(), u.unit.Group)
	}
	if msg.delivery-msg.spared >= q.MaxDelivery || q.Poison.On && msg.poison-msg.spared >= q.Poison.Rollbacks {
		return errors.New("its count is at the limit")
	}
	if got.DeliveryCount != msg.delivery || q.Poison.On && got.PoisonCount != msg.poison {
		return fmt.Errorf("counts %d/%d, want %d/%d", got.DeliveryCount, got.PoisonCount, msg.delivery, msg.poison)
	}
	if msg.kind == broker.KindApp && (string(got.Body) != msg.id || msg.to != nil && got.MessageSeq != msg.seq) {
		return fmt.Errorf("body %q, sequence %d; want %q, %d", got.Body, got.MessageSeq, msg.id, msg.seq)
	}
	return nil
}

// ordered checks invariant 5: what is in u of each conversation is the beginning of what is unresolved of it, in receive
// order, and conversations are not mixed.
func (m *model) ordered(u *modelUnit) error {
	seen := map[any]bool{}
	for i := 0; i < len(u.msgs); {
		stream := u.msgs[i].stream()
		if stream == nil {
			return nil
		}
		if seen[stream] {
			return errors.New("conversations are mixed")
		}
		seen[stream] = true
		for _, want := range m.unresolved(u.reader.queue, stream) {
			if i == len(u.msgs) || u.msgs[i].stream() != stream {
				break
			}
			if u.msgs[i] != want {
				return fmt.Errorf("%v comes before %v", u.msgs[i], want)
			}
			i++
		}
	}
	return nil
}

// unresolved is what arrived of a stream and is neither consumed nor dead nor dropped, in receive order.
func (m *model) unresolved(q *modelQueue, stream any) []*modelMessage {
	var all []*modelMessage
	m.all(q, func(o *modelMessage) {
		if o.stream() == stream && (o.fate == waiting || o.fate == held || o.fate == paused) {
			all = append(all, o)
		}
	})
	level := map[broker.Kind]int{broker.KindDialogTimer: 0, broker.KindError: 1, broker.KindEndDialog: 2, broker.KindApp: 2}
	slices.SortFunc(all, func(a, b *modelMessage) int {
		if d := level[a.kind] - level[b.kind]; d != 0 {
			return d
		}
		return cmp.Compare(a.order, b.order)
	})
	return all
}

// starving returns a message that could have been handed out to a reader of q, or nil.
func (m *model) starving(q *modelQueue) *modelMessage {
	var found *modelMessage
	m.all(q, func(o *modelMessage) {
		g := o.lock()
		if _, parked := q.parked[g]; o.fate == waiting && !parked && len(q.blocked[g]) == 0 && m.holder(q, g) == nil {
			found = o
		}
	})
	return found
}
