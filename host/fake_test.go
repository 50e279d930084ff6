package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/broker"
)

// fakeBroker is a broker in memory: enough of the reader protocol to see whether a host keeps its part of it. It checks
// that part on every call and collects what was broken in faults.
type fakeBroker struct {
	mu       sync.Mutex // guards everything below
	queues   map[string]*fakeQueue
	hosts    []func(string)
	names    int
	units    uint64
	calls    map[string]int
	faults   []string
	fail     func(op, queue string) error // before the call has any effect
	rtt      time.Duration                // each call takes this long
	dead     []broker.DeadAttempt
	keepNext time.Time
	deaf     bool // wake-ups are lost
}

type fakeQueue struct {
	name    string
	ready   []*fakeMessage // by sequence number
	seq     int64
	groups  map[string]string // group → holder
	readers map[string]*fakeReader
	off     bool
	asleep  bool
	gone    bool // unknown to the broker
	limit   int  // rollbacks that turn it off; 0: none
	done    []int64
	peak    int // most slots of all readers together
}

type fakeMessage struct {
	msg       broker.Message
	group     string
	uncertain bool
}

type fakeReader struct {
	b      *fakeBroker
	q      *fakeQueue
	name   string
	slots  int
	lease  time.Duration
	until  time.Time
	held   map[uint64]*fakeUnit
	closed bool
	inCall bool
}

type fakeUnit struct {
	unit *broker.Unit
	m    *fakeMessage
}

func newFakeBroker(queues ...string) *fakeBroker {
	b := &fakeBroker{queues: make(map[string]*fakeQueue), calls: make(map[string]int)}
	for _, q := range queues {
		b.queues[q] = &fakeQueue{name: q, groups: make(map[string]string), readers: make(map[string]*fakeReader)}
	}
	return b
}

func (b *fakeBroker) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// send adds n messages of group to queue; "" : plain.
func (b *fakeBroker) send(queue, group string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[queue]
	for range n {
		q.seq++
		q.ready = append(q.ready, &fakeMessage{
			group: group,
			msg:   broker.Message{SequenceNumber: q.seq, MessageID: fmt.Sprintf("%s-%d", queue, q.seq), Body: []byte("body")},
		})
	}
	b.wakeLocked(q)
}

func (b *fakeBroker) wakeLocked(q *fakeQueue) {
	if !q.asleep {
		return
	}
	q.asleep = false
	if b.deaf {
		return
	}
	for _, w := range b.hosts {
		w(q.name)
	}
}

func (b *fakeBroker) turn(queue string, on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[queue]
	q.off = !on
	if on {
		q.asleep = true // whoever saw it off sleeps
		b.wakeLocked(q)
	}
}

func (b *fakeBroker) count(op string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[op]
}

func (b *fakeBroker) allCalls() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		n += c
	}
	return n
}

func (b *fakeBroker) done(queue string) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queues[queue].done)
}

// begin is the head of every call.
func (b *fakeBroker) begin(op, queue string) error {
	if b.rtt > 0 {
		time.Sleep(b.rtt)
	}
	b.mu.Lock()
	b.calls[op]++
	if b.fail != nil {
		if err := b.fail(op, queue); err != nil {
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

func (b *fakeBroker) OpenReader(_ context.Context, queue string, opt broker.ReaderOptions) (broker.Reader, error) {
	if err := b.begin("open", queue); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	q := b.queues[queue]
	if q == nil || q.gone {
		return nil, broker.ErrUnknownEntity.With("queue %s", queue)
	}
	if q.off {
		return nil, broker.ErrQueueDisabled.With("queue %s", queue)
	}
	taken := 0
	for _, r := range q.readers {
		taken += r.slots
	}
	slots := min(opt.Slots, opt.Limit-taken)
	if slots < 1 {
		return nil, nil
	}
	q.peak = max(q.peak, taken+slots)
	b.names++
	r := &fakeReader{
		b: b, q: q, name: fmt.Sprintf("%s:%d", opt.HostName, b.names), slots: slots,
		lease: opt.Lease, until: time.Now().Add(opt.Lease), held: make(map[uint64]*fakeUnit),
	}
	q.readers[r.name] = r
	return r, nil
}

func (b *fakeBroker) NewHandle(string) (string, error) { return "", errors.New("not used here") }

func (b *fakeBroker) CheckEffect(context.Context, *broker.Unit, *broker.Effect) error { return nil }

func (b *fakeBroker) Wakes(ctx context.Context, wake func(string)) error {
	if err := b.begin("wakes", ""); err != nil {
		return err
	}
	b.hosts = append(b.hosts, wake)
	i := len(b.hosts) - 1
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	b.hosts[i] = func(string) {}
	b.mu.Unlock()
	return ctx.Err()
}

// Keep reaps the readers whose lease has ended.
func (b *fakeBroker) Keep(context.Context) (broker.KeepReport, error) {
	if err := b.begin("keep", ""); err != nil {
		return broker.KeepReport{}, err
	}
	defer b.mu.Unlock()
	rep := broker.KeepReport{Next: b.keepNext, DeadReaders: b.dead}
	b.dead = nil
	for _, q := range b.queues {
		for _, r := range q.readers {
			if time.Now().Before(r.until) {
				continue
			}
			for _, u := range r.held {
				u.m.msg.DeliveryCount++
				rep.DeadReaders = append(rep.DeadReaders, broker.DeadAttempt{Queue: q.name, Reader: r.name, Message: u.m.msg})
			}
			r.giveBack()
			delete(q.readers, r.name)
		}
	}
	return rep, nil
}

func (r *fakeReader) Name() string { return r.name }
func (r *fakeReader) Slots() int   { return r.slots }

func (r *fakeReader) fenced() bool {
	return r.closed || r.q.readers[r.name] != r || !time.Now().Before(r.until)
}

func (r *fakeReader) Turn(_ context.Context, req broker.TurnRequest) (broker.TurnReply, error) {
	r.b.mu.Lock()
	if r.inCall {
		r.b.fault("%s: two turns at once", r.name)
	}
	r.inCall = true
	r.b.mu.Unlock()
	if err := r.b.begin("turn", r.q.name); err != nil {
		r.b.mu.Lock()
		defer r.b.mu.Unlock()
		r.inCall = false
		return broker.TurnReply{}, err
	}
	defer r.b.mu.Unlock()
	r.inCall = false
	if r.fenced() {
		return broker.TurnReply{}, broker.ErrLockLost.With("reader %s", r.name)
	}
	r.until = time.Now().Add(r.lease)
	reply := broker.TurnReply{Now: time.Now()}
	for i := range req.Settle {
		reply.Results = append(reply.Results, r.settle(&req.Settle[i]))
	}
	r.checkFree(&req)
	if reply.Off = r.q.off; !reply.Off {
		r.receive(&req, &reply)
	}
	reply.Waiting = int64(len(r.q.ready))
	return reply, nil
}

// checkFree checks what a host may offer: no slot beyond its window, empty slots first and once each.
func (r *fakeReader) checkFree(req *broker.TurnRequest) {
	held := make(map[int]int)
	for _, u := range r.held {
		held[u.unit.Slot]++
	}
	empty := make(map[int]bool)
	for i, s := range req.Free {
		if s < 0 || s >= r.slots {
			r.b.fault("%s offers slot %d of %d", r.name, s, r.slots)
		}
		if i < req.Empty && (held[s] > 0 || empty[s]) {
			r.b.fault("%s offers slot %d as empty; it holds %d", r.name, s, held[s])
		}
		empty[s] = true
	}
	for _, s := range req.Free {
		if held[s]++; held[s] > windowMax {
			r.b.fault("%s offers slot %d beyond %d units", r.name, s, windowMax)
		}
	}
	if req.Top < 1 {
		r.b.fault("%s asks for top %d", r.name, req.Top)
	}
}

func (r *fakeReader) receive(req *broker.TurnRequest, reply *broker.TurnReply) {
	pure := len(req.Free) == req.Empty
	next := 0
	for _, slot := range req.Free {
		var m *fakeMessage
		for ; next < len(r.q.ready) && m == nil; next++ {
			c := r.q.ready[next]
			if c.uncertain && !pure {
				reply.Alone = true
				continue
			}
			if c.group == "" || r.q.groups[c.group] == "" {
				m = c
			}
		}
		if m == nil {
			break
		}
		next--
		r.q.ready = slices.Delete(r.q.ready, next, next+1)
		r.hand(m, slot, reply)
	}
	if len(reply.Units) == 0 && len(req.Free) > 0 && !reply.Alone {
		r.q.asleep = true
	}
}

func (r *fakeReader) hand(m *fakeMessage, slot int, reply *broker.TurnReply) {
	if m.group != "" {
		r.q.groups[m.group] = r.name
	}
	r.b.units++
	u := &broker.Unit{ID: r.b.units, Slot: slot, Group: m.group, Messages: []broker.Message{m.msg}}
	for _, o := range r.held {
		if o.unit.Slot == slot && o.m.uncertain {
			r.b.fault("%s: slot %d holds an uncertain unit and was offered for another", r.name, slot)
		}
	}
	r.held[u.ID] = &fakeUnit{unit: u, m: m}
	reply.Units = append(reply.Units, u)
}

func (r *fakeReader) settle(s *broker.Settlement) broker.SettleResult {
	u := r.held[s.Unit.ID]
	if u == nil {
		return broker.SettleResult{Unit: s.Unit, Consequence: broker.Lost, Err: broker.ErrLockLost}
	}
	delete(r.held, s.Unit.ID)
	delete(r.q.groups, u.m.group)
	res := broker.SettleResult{Unit: s.Unit}
	switch s.Verdict {
	case broker.VerdictCommit:
		r.q.done = append(r.q.done, u.m.msg.SequenceNumber)
		res.Consequence = broker.Committed
	case broker.VerdictRollback:
		u.m.msg.DeliveryCount++
		res.Consequence = broker.RolledBack
		if r.q.limit > 0 && u.m.msg.DeliveryCount >= r.q.limit {
			r.q.off, res.Consequence = true, broker.QueueTurned
		}
		r.back(u.m)
	case broker.VerdictDeadLetter:
		res.Consequence = broker.DeadLettered
	case broker.VerdictRelease:
		res.Consequence = broker.Released
		r.back(u.m)
	}
	return res
}

func (r *fakeReader) back(m *fakeMessage) {
	i, _ := slices.BinarySearchFunc(r.q.ready, m.msg.SequenceNumber, func(o *fakeMessage, seq int64) int {
		return int(o.msg.SequenceNumber - seq)
	})
	r.q.ready = slices.Insert(r.q.ready, i, m)
	r.b.wakeLocked(r.q)
}

func (r *fakeReader) giveBack() {
	for id, u := range r.held {
		delete(r.held, id)
		delete(r.q.groups, u.m.group)
		r.back(u.m)
	}
}

func (r *fakeReader) Renew(context.Context) error {
	if err := r.b.begin("renew", r.q.name); err != nil {
		return err
	}
	defer r.b.mu.Unlock()
	if r.fenced() {
		return broker.ErrLockLost
	}
	r.until = time.Now().Add(r.lease)
	return nil
}

func (r *fakeReader) Close(context.Context) error {
	if err := r.b.begin("close", r.q.name); err != nil {
		return err
	}
	defer r.b.mu.Unlock()
	if r.closed {
		r.b.fault("%s was closed twice", r.name)
	}
	fenced := r.fenced()
	r.closed = true
	if fenced {
		return broker.ErrLockLost
	}
	r.giveBack()
	delete(r.q.readers, r.name)
	return nil
}
