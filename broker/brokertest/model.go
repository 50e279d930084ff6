package brokertest

import (
	"fmt"
	"sort"
	"time"

	"parley/broker"
)

// model is what must be true of a namespace after everything that was done to it, in the simplest words: no scripts, no
// streams, one step after the other. Where a broker has a choice (which group next, when a transmission moves on) the
// model does not choose: it is told what happened and says whether that was legal.
type model struct {
	now    time.Time
	queues map[string]*modelQueue
	msgs   map[string]*modelMessage // application messages, by message id
	system []*modelMessage          // system messages
	sides  []*modelSide
	busy   map[string]bool // lock names held as the present turn began
	seen   map[string]int  // what happened, and how often
}

// modelQueue is a queue.
type modelQueue struct {
	broker.QueueSettings
	status  broker.QueueStatus
	parked  map[string]time.Time       // lock name → when its pause ends
	blocked map[string][]*modelMessage // lock name → dead letters that hold it up
	readers []*modelReader             // registered, alive or not
	arrived int64                      // messages that ever arrived
	trips   int                        // times that poison turned it OFF
	reaped  bool                       // a death turned it OFF just now: what the same housekeeping transmitted may have come before
}

// modelSide is one side of a dialog.
type modelSide struct {
	queue     *modelQueue
	far       *modelSide
	initiator bool
	handle    string // "" at the target until something arrived there
	group     string // lock name
	ended     bool   // END was called here
	erred     bool   // an Error arrived
	left      bool   // an EndDialog arrived
	sent      int64  // messages sent from here
	timer     time.Time
}

// fate is what became of a message.
type fate uint8

const (
	flying  fate = iota // in transmission
	waiting             // arrived; can be taken when its group is free and not parked
	held                // in a unit
	paused              // a plain message whose pause runs
	dead                // in the dead-letter queue
	done                // consumed by a commit
	dropped             // its conversation ended here
)

func (f fate) String() string {
	return [...]string{"flying", "waiting", "held", "paused", "dead", "done", "dropped"}[f]
}

// modelMessage is a message.
type modelMessage struct {
	id      string
	kind    broker.Kind
	queue   *modelQueue // where it goes
	from    *modelQueue // where it came from; nil: from outside
	to      *modelSide  // nil: no dialog
	session string
	seq     int64 // of its conversation and direction
	ref     string
	number  int64 // sequence number of its queue, 0 until it was seen
	fate    fate
	order   int64     // place among the arrivals of its queue: number, or a guess until that is known
	due     time.Time // end of the pause
	unit    *modelUnit
	reaped  bool // its reader died just now

	delivery, poison, uncertain int // as they must be stored
	failed, guessed             int // attempts that really failed or died; and those counted on suspicion
	spared                      int // of those counted, failures of a unit of several messages: they carry it to no limit
}

// modelReader is a reader.
type modelReader struct {
	r        broker.Reader
	queue    *modelQueue
	slots    [][]*modelUnit // first the one that runs
	leaseEnd time.Time
	asleep   bool // stalled or killed: it makes no calls
	closed   bool
}

// modelUnit is a unit in the hands of a reader.
type modelUnit struct {
	unit   *broker.Unit
	reader *modelReader
	msgs   []*modelMessage
}

// blamed reports whether an attempt at msg failed, or may have died, since it was last settled.
func (m *modelMessage) blamed() bool { return m.delivery > 0 || m.uncertain > 0 }

// uncertain reports whether an earlier attempt may have died in u without being counted.
func (u *modelUnit) uncertain() bool {
	for _, m := range u.msgs {
		if m.uncertain > 0 {
			return true
		}
	}
	return false
}

func newModel(queues ...broker.QueueSettings) *model {
	m := &model{queues: map[string]*modelQueue{}, msgs: map[string]*modelMessage{}, seen: map[string]int{}}
	for _, q := range queues {
		m.queues[q.Name] = &modelQueue{QueueSettings: q, status: broker.QueueActive, parked: map[string]time.Time{}, blocked: map[string][]*modelMessage{}}
	}
	return m
}

// register notes a reader that was opened on q.
func (m *model) register(q *modelQueue, r broker.Reader) *modelReader {
	mr := &modelReader{r: r, queue: q, slots: make([][]*modelUnit, r.Slots()), leaseEnd: m.now.Add(broker.DefaultLease)}
	q.readers = append(q.readers, mr)
	return mr
}

// lock is the lock name of m's group, "" for a plain message.
func (m *modelMessage) lock() string {
	switch {
	case m.to != nil:
		return m.to.group
	case m.session != "":
		return "s:" + m.session
	}
	return ""
}

func (m *modelMessage) String() string {
	if m.kind == broker.KindApp {
		return fmt.Sprintf("%s (%v)", m.id, m.fate)
	}
	return fmt.Sprintf("%c to %s (%v)", m.kind, m.to.handle, m.fate)
}

// stream names the sequence m belongs to: its conversation and direction, its session, or "" for none.
func (m *modelMessage) stream() any {
	if m.to != nil {
		return m.to
	}
	if m.session != "" {
		return m.session
	}
	return nil
}

// all calls yield for every message of q.
func (m *model) all(q *modelQueue, yield func(*modelMessage)) {
	ids := make([]string, 0, len(m.msgs))
	for id := range m.msgs {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		if m.msgs[id].queue == q {
			yield(m.msgs[id])
		}
	}
	for _, s := range m.system {
		if s.queue == q {
			yield(s)
		}
	}
}

// land lets msg arrive.
func (m *model) land(msg *modelMessage) {
	q := msg.queue
	q.arrived++
	msg.order, msg.fate = unseen+q.arrived, waiting
	if msg.to == nil {
		return
	}
	if msg.to.ended {
		msg.fate = dropped
		return
	}
	switch msg.kind {
	case broker.KindError:
		msg.to.erred = true
	case broker.KindEndDialog:
		msg.to.left = true
	}
}

// send accepts a message for queue. From a handler's commit it may have to wait in transmission.
func (m *model) send(q, from *modelQueue, id, session string) {
	msg := &modelMessage{id: id, kind: broker.KindApp, queue: q, from: from, session: session, seq: -1}
	m.msgs[id] = msg
	if from == nil || q.status.CanSend() {
		m.land(msg)
	}
}

// canSend reports whether SEND is legal on s.
func (s *modelSide) canSend() bool { return !s.ended && !s.erred && !s.left }

// say sends an application message from s, which must be able to.
func (m *model) say(s *modelSide, id string) {
	msg := &modelMessage{id: id, kind: broker.KindApp, queue: s.far.queue, from: s.queue, to: s.far, seq: s.sent}
	s.sent++
	m.launch(msg)
	m.msgs[id] = msg
}

// launch sends msg on its way: straight to its queue when that takes it and nothing older of its conversation waits.
func (m *model) launch(msg *modelMessage) {
	if msg.queue.status.CanSend() && m.flight(msg.to) == nil {
		m.land(msg)
		return
	}
	m.seen["sent by transmission"]++
	msg.fate = flying
}

// flight returns a message to s that is in transmission, or nil.
func (m *model) flight(s *modelSide) *modelMessage {
	var found *modelMessage
	m.all(s.queue, func(o *modelMessage) {
		if o.to == s && o.fate == flying {
			found = o
		}
	})
	return found
}

// end ends side s; its messages here are gone, and the far side is told unless it has left already.
func (m *model) end(s *modelSide, code int) {
	m.seen["end"]++
	s.ended, s.timer = true, zeroTime
	m.all(s.queue, func(o *modelMessage) {
		if o.to == s && (o.fate == waiting || o.fate == paused) {
			o.fate = dropped
		}
	})
	m.unpark(s.queue, s.group)
	m.unblock(s.queue, func(o *modelMessage) bool { return o.to == s })
	if s.erred || s.left {
		m.dropFlights(s.far)
		return
	}
	if s.sent == 0 && s.initiator {
		return // the far side never knew of it
	}
	msg := &modelMessage{kind: broker.KindEndDialog, queue: s.far.queue, from: s.queue, to: s.far, seq: s.sent}
	s.sent++
	if m.launch(msg); code > 0 { // an Error takes the way of what it drops
		msg.kind = broker.KindError
		m.dropFlights(s.far)
		if !msg.queue.status.CanSend() {
			msg.fate = flying
		}
	}
	m.system = append(m.system, msg)
}

// dropFlights drops what is in transmission to s.
func (m *model) dropFlights(s *modelSide) {
	m.all(s.queue, func(o *modelMessage) {
		if o.to == s && o.fate == flying {
			o.fate = dropped
		}
	})
}

// unpark forgets the pause of a group of which nothing is left.
func (m *model) unpark(q *modelQueue, group string) {
	if !m.alive(q, group) {
		delete(q.parked, group)
	}
}

// alive reports whether something of group waits in q.
func (m *model) alive(q *modelQueue, group string) bool {
	left := false
	m.all(q, func(o *modelMessage) { left = left || o.fate == waiting && o.lock() == group })
	return left
}

// move moves s to group.
func (m *model) move(s *modelSide, group string) {
	old := s.group
	s.group = group
	m.unpark(s.queue, old)
}

// holder returns the unit that holds group, or nil.
func (m *model) holder(q *modelQueue, group string) *modelUnit {
	for _, r := range q.readers {
		for _, slot := range r.slots {
			for _, u := range slot {
				if group != "" && u.unit.Group == group {
					return u
				}
			}
		}
	}
	return nil
}

// unseen is more than any sequence number.
const unseen = 1 << 40

// zeroTime is no time at all: no timer armed.
var zeroTime time.Time
