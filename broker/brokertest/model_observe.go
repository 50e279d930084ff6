package brokertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"parley/broker"
)

// identify finds the message that got is; group is the lock name it was found under. A timer may have fired, and a first
// message shows the handle of its target.
func (m *model) identify(q *modelQueue, got broker.Message, group string) (*modelMessage, error) {
	if got.Kind == broker.KindApp {
		msg := m.msgs[got.MessageID]
		if msg == nil || msg.queue != q {
			return nil, fmt.Errorf("message %q was never sent to %s", got.MessageID, q.Name)
		}
		return msg, m.meet(msg, got, group)
	}
	for _, msg := range m.system {
		if msg.number == got.SequenceNumber && msg.queue == q {
			return msg, m.meet(msg, got, group)
		}
	}
	for _, handle := range []string{got.Conversation, ""} { // one that was not seen before, at best to a known target
		for _, msg := range m.system {
			if msg.kind == got.Kind && msg.queue == q && msg.number == 0 && msg.to.handle == handle {
				return msg, m.meet(msg, got, group)
			}
		}
	}
	s := m.side(got.Conversation)
	if got.Kind != broker.KindDialogTimer || s == nil || s.queue != q {
		return nil, fmt.Errorf("system message %c of %q out of nothing", got.Kind, got.Conversation)
	}
	return m.fire(s, got)
}

// meet learns from a message what the model cannot know: where it is stored, and the handle of its conversation.
func (m *model) meet(msg *modelMessage, got broker.Message, group string) error {
	if msg.number != 0 && msg.number != got.SequenceNumber {
		return fmt.Errorf("%v had sequence number %d, has %d", msg, msg.number, got.SequenceNumber)
	}
	msg.ref, msg.number = got.Ref, got.SequenceNumber
	if msg.to == nil {
		return nil
	}
	if msg.to.handle == "" {
		msg.to.handle, msg.to.group = got.Conversation, group
	}
	if msg.to.handle != got.Conversation {
		return fmt.Errorf("%v came on conversation %q, want %q", msg, got.Conversation, msg.to.handle)
	}
	return nil
}

// fire lets the timer of s fire, which got shows.
func (m *model) fire(s *modelSide, got broker.Message) (*modelMessage, error) {
	if s.timer.IsZero() || s.timer.After(m.now) {
		return nil, fmt.Errorf("the timer of %q fired at %v, it is due at %v", s.handle, m.now, s.timer)
	}
	if o := m.pendingTimer(s); o != nil {
		if !o.reaped {
			return nil, fmt.Errorf("a second timer message waits on %q", s.handle)
		}
		o.fate = dropped // it came back when this one had fired
	}
	msg := &modelMessage{kind: broker.KindDialogTimer, queue: s.queue, to: s, seq: -1}
	m.seen["timer fired"]++
	s.timer = zeroTime
	m.land(msg)
	m.system = append(m.system, msg)
	return msg, m.meet(msg, got, s.group)
}

// pendingTimer returns the timer message of s that nobody has received, or nil.
func (m *model) pendingTimer(s *modelSide) *modelMessage {
	for _, o := range m.system {
		if o.to == s && o.kind == broker.KindDialogTimer && o.fate == waiting {
			return o
		}
	}
	return nil
}

// observe compares the snapshot of a queue with the model and takes over what the broker was free to do: transmissions
// that arrived, timers that fired, pauses that ended. It returns the first difference.
func (m *model) observe(snap broker.Snapshot) error {
	q := m.queues[snap.Queue]
	if vs := Violations(snap); len(vs) > 0 {
		return errors.New(vs[0])
	}
	if snap.Status != q.status {
		return fmt.Errorf("status is %s, want %s", snap.Status, q.status)
	}
	rows, err := m.match(q, snap)
	if err != nil {
		return err
	}
	q.reaped = false
	m.all(q, func(o *modelMessage) { o.reaped = false })
	m.pauses(q, snap)
	if err := m.timers(q, snap); err != nil {
		return err
	}
	m.all(q, func(msg *modelMessage) {
		if e := m.agree(msg, rows[msg]); e != nil && err == nil {
			err = e
		}
	})
	if err != nil {
		return err
	}
	m.leases(q, snap)
	if err := m.holdups(q, snap); err != nil {
		return err
	}
	return m.conversations(q, snap)
}

// match finds the message of each row, in order of arrival, and lets those arrive that were in transmission.
func (m *model) match(q *modelQueue, snap broker.Snapshot) (map[*modelMessage]broker.StoredMessage, error) {
	rows := map[*modelMessage]broker.StoredMessage{}
	stored := slices.Clone(snap.Messages)
	sort.SliceStable(stored, func(i, j int) bool { return orderOf(stored[i]) < orderOf(stored[j]) })
	last := map[any]*modelMessage{}
	for _, row := range stored {
		if row.Place == broker.PlaceTransit {
			continue
		}
		msg, err := m.identify(q, row.Message, row.LockName)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rowName(row), err)
		}
		if _, twice := rows[msg]; twice {
			return nil, fmt.Errorf("%v is stored twice", msg)
		}
		rows[msg] = row
		if msg.fate == flying {
			if err := m.arrive(msg); err != nil {
				return nil, err
			}
		}
		msg.order = orderOf(row)
		if msg.stream() == nil || row.Place == broker.PlaceDead || msg.seq < 0 || msg.kind == broker.KindError {
			continue
		}
		if o := last[msg.stream()]; o != nil && o.seq > msg.seq {
			return nil, fmt.Errorf("%v arrived before %v", o, msg)
		}
		last[msg.stream()] = msg
	}
	return rows, nil
}

// orderOf is the number that orders a row.
func orderOf(row broker.StoredMessage) int64 {
	if row.OldNumber != 0 {
		return row.OldNumber
	}
	return row.SequenceNumber
}

// arrive lets a message in transmission arrive: after all older ones of its conversation, and not while the queue is off.
func (m *model) arrive(msg *modelMessage) error {
	if !msg.queue.status.CanSend() && !msg.queue.reaped {
		return fmt.Errorf("%v arrived although the queue is off", msg)
	}
	var err error
	m.all(msg.queue, func(o *modelMessage) {
		if msg.to != nil && o.to == msg.to && o.fate == flying && o.seq < msg.seq && !(o.to.ended && o.kind != broker.KindApp) {
			err = fmt.Errorf("%v arrived before %v", msg, o)
		}
	})
	m.seen["transmission arrived"]++
	m.land(msg)
	return err
}

// pauses takes over the pauses that ended.
func (m *model) pauses(q *modelQueue, snap broker.Snapshot) {
	for g, due := range q.parked {
		if l, ok := snap.Locks[g]; (!ok || !l.Parked) && !due.After(m.now) {
			delete(q.parked, g)
		}
	}
	m.all(q, func(msg *modelMessage) {
		if _, ok := snap.Retry[msg.ref]; msg.fate == paused && !ok && !msg.due.After(m.now) {
			msg.fate = waiting
		}
	})
}

// timers: an armed timer is kept with its instant; one that is kept no more has fired, and was due.
func (m *model) timers(q *modelQueue, snap broker.Snapshot) error {
	for _, s := range m.sides {
		if s.queue != q || s.handle == "" {
			continue
		}
		due, ok := snap.Timers[s.handle]
		switch {
		case ok && !due.Equal(s.timer):
			return fmt.Errorf("the timer of %s is due at %v, want %v", s.handle, due, s.timer)
		case !ok && !s.timer.IsZero():
			if s.timer.After(m.now) || m.pendingTimer(s) == nil {
				return fmt.Errorf("the timer of %s, due at %v, is gone", s.handle, s.timer)
			}
			s.timer = zeroTime // it fired into the message that waits already
		}
	}
	return nil
}

// agree compares one message with its row.
func (m *model) agree(msg *modelMessage, row broker.StoredMessage) error {
	stored := row.Place != ""
	switch msg.fate {
	case done:
		if stored {
			return fmt.Errorf("%v is still stored: %s", msg, rowName(row))
		}
		return nil
	case dropped:
		if stored && !row.Ended {
			return fmt.Errorf("%v, but it still counts: %s", msg, rowName(row))
		}
		return nil
	case flying:
		return nil
	}
	if !stored {
		return fmt.Errorf("%v is lost", msg)
	}
	if !slices.Contains(placesOf(msg), row.Place) {
		return fmt.Errorf("%v is found %s", msg, row.Place)
	}
	if msg.fate == held && row.Holder != msg.unit.reader.r.Name() {
		return fmt.Errorf("%v is held by %q, want %q", msg, row.Holder, msg.unit.reader.r.Name())
	}
	if msg.fate == dead {
		return nil
	}
	got := fmt.Sprint(row.DeliveryCount, row.PoisonCount, row.Uncertain)
	if !msg.queue.Poison.On {
		row.PoisonCount = 0
		got = fmt.Sprint(row.DeliveryCount, 0, row.Uncertain)
	}
	if want := fmt.Sprint(msg.delivery, msg.poison, msg.uncertain); got != want {
		return fmt.Errorf("%v has counts %s, want %s", msg, got, want)
	}
	if msg.delivery > msg.failed+msg.guessed || msg.failed > msg.delivery+msg.uncertain {
		return fmt.Errorf("%v failed %d times, counted %d (%d guessed, %d uncertain)",
			msg, msg.failed, msg.delivery, msg.guessed, msg.uncertain)
	}
	return nil
}

// placesOf is where a message with that fate may be stored.
func placesOf(msg *modelMessage) []broker.Place {
	switch msg.fate {
	case held:
		return []broker.Place{broker.PlaceHeld}
	case paused:
		return []broker.Place{broker.PlaceRetry}
	case dead:
		return []broker.Place{broker.PlaceDead}
	}
	if msg.lock() == "" {
		return []broker.Place{broker.PlaceUnread, broker.PlaceBack}
	}
	if _, parked := msg.queue.parked[msg.lock()]; parked {
		return []broker.Place{broker.PlaceUnread, broker.PlaceBacklog, broker.PlaceRetry}
	}
	return []broker.Place{broker.PlaceUnread, broker.PlaceBacklog}
}

// leases learns how long each reader lives.
func (m *model) leases(q *modelQueue, snap broker.Snapshot) {
	for _, r := range q.readers {
		if k, ok := snap.Readers[r.r.Name()]; ok {
			r.leaseEnd = k.LeaseEnd
		}
	}
}

// conversations: those that have not ended here, each in its group; parked groups with the right instant; readers as
// registered.
func (m *model) conversations(q *modelQueue, snap broker.Snapshot) error {
	want := map[string]string{}
	for _, s := range m.sides {
		if s.queue == q && s.handle != "" && !s.ended {
			want[s.handle] = s.group
		}
	}
	if !maps.Equal(want, snap.Conversations) {
		return fmt.Errorf("conversations are %v, want %v", snap.Conversations, want)
	}
	for g, due := range q.parked {
		if !snap.Locks[g].Parked || !snap.Retry[g].Equal(due) {
			return fmt.Errorf("%s should be parked until %v: %+v, %v", g, due, snap.Locks[g], snap.Retry[g])
		}
	}
	for g, l := range snap.Locks {
		// A group whose conversations have all ended may stay parked: what is left of it is dead.
		if _, ok := q.parked[g]; l.Parked && !ok && m.alive(q, g) {
			return fmt.Errorf("%s is parked, nothing parked it", g)
		}
	}
	registered := map[string]bool{}
	for _, r := range q.readers {
		registered[r.r.Name()] = true
	}
	for name := range snap.Readers {
		if !registered[name] {
			return fmt.Errorf("reader %s is registered, nobody plays it", name)
		}
	}
	for name := range registered {
		if _, ok := snap.Readers[name]; !ok {
			return fmt.Errorf("reader %s is not registered", name)
		}
	}
	return nil
}
