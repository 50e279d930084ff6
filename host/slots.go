package host

import (
	"sync"
	"time"

	"parley/broker"
)

// slots is the slots of one reader and the goroutines that run their units.
//
// A slot runs its units one after another. Few workers serve many slots: handlers that take microseconds are run by one
// or two goroutines, because handing each unit to a goroutine of its own costs more than running it; as soon as one
// takes long, every slot that waits gets a worker of its own, so that no slot waits for another.
type slots struct {
	crew *crew
	run  func(slot int, u *broker.Unit) finished
	pace *pace
	bell chan struct{} // rung, once a listen, when what the loop listens for is so
	base time.Time     // what began counts from: reading the monotonic clock alone costs half

	mu         sync.Mutex // guards everything below
	work       sync.Cond  // signalled when queue grows, or closed
	slots      []slot
	queue      []int // slots with units that no worker has taken, oldest first
	done       []finished
	unfinished int // units handed out and not finished
	fast       int // those of them that the loop should wait for: in slots not marked slow
	workers    int
	idle       int  // workers that wait for work
	inLoop     bool // the loop itself is to run the queue
	listening  listening
	closed     bool
}

// slot is one slot: at most one unit of it runs.
type slot struct {
	units   []*broker.Unit // waiting for their turn in this slot: from next on
	next    int
	held    int // unfinished units, the running one included
	queued  bool
	running bool
	slow    bool          // the running unit takes long: do not wait for it
	solo    bool          // what it holds was handed out alone and must stay alone
	began   time.Duration // of the running unit
}

// finished is one attempt that has ended and is not settled.
type finished struct {
	settlement broker.Settlement
	span       AttemptSpan
}

// listening is what the loop wants to be told by the bell.
type listening uint8

const (
	toNothing listening = iota
	toAny               // something finished
	toAll               // something finished and nothing fast runs
)

func newSlots(c *crew, n int, p *pace, run func(slot int, u *broker.Unit) finished) *slots {
	s := &slots{crew: c, run: run, pace: p, bell: make(chan struct{}, 1), base: time.Now(), slots: make([]slot, n)}
	s.work.L = &s.mu
	return s
}

// hand gives units to their slots. A unit of a slot that does not exist is answered false, and nothing is handed.
func (s *slots) hand(units []*broker.Unit, solo bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range units {
		if u.Slot < 0 || u.Slot >= len(s.slots) {
			return false
		}
	}
	expected, known := s.pace.unit()
	for _, u := range units {
		l := &s.slots[u.Slot]
		if l.held == 0 {
			l.slow, l.solo = known && expected >= slowUnit, solo
		}
		l.units = append(l.units[:copy(l.units, l.units[l.next:])], u)
		l.next = 0
		l.held++
		s.unfinished++
		if !l.slow {
			s.fast++
		}
		if !l.running && !l.queued {
			l.queued = true
			s.queue = append(s.queue, u.Slot)
		}
	}
	if s.inLoop = known && time.Duration(len(units))*expected <= inLoopSpan; !s.inLoop {
		s.wake(s.workersFor(len(units), expected, known))
	}
	return true
}

// mine reports whether the loop is to run what is queued.
func (s *slots) mine() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inLoop
}

// serveMine runs queued slots, one after another, while the loop that called it still is the loop.
func (s *slots) serveMine(still func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inLoop = false
	for len(s.queue) > 0 && still() {
		s.serve(s.next())
	}
}

// next takes the oldest slot off the queue. The caller holds mu.
func (s *slots) next() int {
	i := s.queue[0]
	s.queue = s.queue[:copy(s.queue, s.queue[1:])]
	return i
}

// inLoopSpan is how much work the loop does itself, and what a worker more is worth.
const inLoopSpan = 500 * time.Microsecond

// workersFor says how many goroutines should run n units that take d each. Two workers that share half a millisecond of
// work gain less than waking the second one costs.
func (s *slots) workersFor(n int, d time.Duration, known bool) int {
	if !known {
		return len(s.queue)
	}
	return min(int(time.Duration(n)*d/inLoopSpan)+1, len(s.queue))
}

// wake has n workers look at the queue. The caller holds mu.
func (s *slots) wake(n int) {
	for range min(n, s.idle) {
		s.work.Signal()
	}
	for i := s.idle; i < n && s.workers < len(s.slots); i++ {
		s.workers++
		s.crew.start(s.worker)
	}
}

// worker runs the units of one queued slot after another until the slots are closed.
func (s *slots) worker() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 {
			if s.closed {
				s.workers--
				s.work.Broadcast()
				return
			}
			s.idle++
			s.work.Wait()
			s.idle--
		}
		s.serve(s.next())
	}
}

// serve runs all units of slot i. The caller holds mu, which is released while a unit runs.
func (s *slots) serve(i int) {
	l := &s.slots[i]
	l.queued, l.running = false, true
	l.began = time.Since(s.base)
	for l.next < len(l.units) {
		u := l.units[l.next]
		l.units[l.next] = nil
		l.next++
		s.mu.Unlock()
		f := s.run(i, u)
		now := time.Since(s.base)
		s.mu.Lock()
		s.pace.add(now - l.began)
		l.began = now
		s.finish(l, f)
	}
	l.units, l.next, l.running = l.units[:0], 0, false
}

// finish notes that a unit of l ended.
func (s *slots) finish(l *slot, f finished) {
	s.done = append(s.done, f)
	s.unfinished--
	l.held--
	if l.slow {
		l.slow = false
		s.fast += l.held
	} else {
		s.fast--
	}
	s.ring()
}

// ring rings the bell if what the loop listens for is so. The caller holds mu.
func (s *slots) ring() {
	if len(s.done) == 0 || s.listening == toNothing || s.listening == toAll && s.fast > 0 {
		return
	}
	s.listening = toNothing
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// listen sets what the bell is rung for next.
func (s *slots) listen(to listening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening = to
	s.ring()
}

// view is what the loop decides from.
type view struct {
	done       int
	unfinished int
	fast       int
	free       int // slots that may be offered
}

// look returns the state of the slots for a window.
func (s *slots) look(window int, alone bool) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{done: len(s.done), unfinished: s.unfinished, fast: s.fast}
	for i := range s.slots {
		if s.slots[i].room(window, alone) > 0 {
			v.free++
		}
	}
	return v
}

// room returns how many more units l may hold.
func (l *slot) room(window int, alone bool) int {
	if l.held > 0 && (alone || l.solo) {
		return 0
	}
	if alone {
		return 1
	}
	return max(window-l.held, 0)
}

// take moves what finished into done and, when offer is set, lists what the slots may get in free: first the slots that
// hold nothing, once each, and their number is empty; then one more unit a slot in turn, up to the window.
func (s *slots) take(done []finished, free []int, window int, offer, alone bool) (_ []finished, _ []int, empty int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, s.done = s.done, done[:0]
	s.listening = toNothing
	select {
	case <-s.bell: // rung for what was just taken
	default:
	}
	free = free[:0]
	if !offer {
		return done, free, 0
	}
	for i := range s.slots {
		if s.slots[i].held == 0 {
			free = append(free, i)
		}
	}
	empty = len(free)
	if alone {
		return done, free, empty
	}
	for round := 1; round <= window; round++ {
		for i := range s.slots {
			l := &s.slots[i]
			if room := l.room(window, false); l.held == 0 && room > round || l.held > 0 && room >= round {
				free = append(free, i)
			}
		}
	}
	return done, free, empty
}

// hurry marks as slow what has been running for long, and gives every queued slot a worker of its own.
func (s *slots) hurry() {
	now := time.Since(s.base)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		l := &s.slots[i]
		if l.running && !l.slow && now-l.began >= slowUnit {
			l.slow = true
			s.fast -= l.held
		}
	}
	s.wake(len(s.queue))
}

// release turns every unit that has not been started into a finished one to be given back uncounted.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		l := &s.slots[i]
		for ; l.next < len(l.units); l.next++ {
			u := l.units[l.next]
			l.units[l.next] = nil
			s.finishUnstarted(l, u)
		}
	}
	s.ring()
}

func (s *slots) finishUnstarted(l *slot, u *broker.Unit) {
	s.done = append(s.done, finished{settlement: broker.Settlement{Unit: u, Verdict: broker.VerdictRelease}})
	s.unfinished--
	l.held--
	if !l.slow {
		s.fast--
	}
}

// close ends the workers and returns when the last one has ended. What has not been started is dropped.
func (s *slots) close() {
	s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.work.Broadcast()
	for s.workers > 0 {
		s.work.Wait()
	}
}
