package brokertest

import (
	"context"
	"sync"
	"time"

	"parley/broker"
)

// wakeHoles: whatever makes work deliverable wakes the readers that sleep.
var wakeHoles = []test{
	{"TestH12_a_send_wakes", func(s *stage) {
		s.wakes(func() func() { return func() { s.send(workQueue, "m") } })
	}},
	{"TestH12_a_message_of_a_dialog_wakes", func(s *stage) {
		s.wakes(func() func() { c := s.begin(); return func() { s.say(c, "m") } })
	}},
	{"TestH12_a_timer_wakes", func(s *stage) {
		s.wakes(func() func() {
			c := s.begin()
			s.say(c, "m")
			w := s.open(workQueue, 1)
			u := w.one("m")
			w.commit(u, arm(u.Messages[0].Conversation, time.Second))
			return func() { s.advance(2 * time.Second) }
		})
	}},
	{"TestH12_a_rollback_wakes", func(s *stage) {
		s.wakes(s.holding(func(w *worker, u *broker.Unit) { w.fail(u) }))
	}},
	{"TestH12_a_release_wakes", func(s *stage) {
		s.wakes(s.holding(func(w *worker, u *broker.Unit) { w.want(broker.Released, release(u)) }))
	}},
	{"TestH12_a_closing_reader_wakes", func(s *stage) {
		s.wakes(s.holding(func(w *worker, _ *broker.Unit) { w.close() }))
	}},
	{"TestH12_a_commit_that_leaves_more_wakes", func(s *stage) {
		s.wakes(s.holding(func(w *worker, u *broker.Unit) { w.commit(u) }))
	}},
	{"TestH12_a_reaped_reader_wakes", func(s *stage) {
		s.wakes(s.holding(func(*worker, *broker.Unit) { s.expire() }))
	}},
	{"TestH12_the_end_of_a_pause_wakes", func(s *stage) {
		s.wakes(func() func() {
			s.sendSession(workQueue, "a", "m")
			w := s.open(workQueue, 1)
			w.want(broker.RolledBack, pause(w.one("m"), time.Second))
			return func() { s.advance(2 * time.Second) }
		})
	}},
	{"TestH12_turning_on_wakes", func(s *stage) {
		s.wakes(func() func() {
			s.wakeSleepers()
			s.status(workQueue, broker.QueueOff)
			return func() { s.status(workQueue, broker.QueueActive) }
		})
	}},
	{"TestH12_an_effect_wakes", func(s *stage) {
		s.send(sinkQueue, "p")
		w := s.open(sinkQueue, 1)
		u := w.one("p")
		s.wakes(func() func() {
			return func() {
				w.commit(u, broker.Effect{Kind: broker.EffectSendTo, Queue: workQueue, Message: message("m")})
			}
		})
	}},
	{"TestH12_a_transmission_wakes", func(s *stage) {
		s.wakes(func() func() {
			c := s.begin()
			s.status(workQueue, broker.QueueOff)
			s.say(c, "m")
			s.status(workQueue, broker.QueueActive)
			return func() { s.until("transmitted", func() bool { return s.advance(5*time.Second).Transmitted > 0 }) }
		})
	}},
	{"TestH12_an_ended_conversation_hides_nothing", holeEndedHides},
	{"TestH12_a_filed_backlog_hides_nothing", holeFiledHides},
}

// holding sets up a held message with one more of its session behind it; act then is done to it.
func (s *stage) holding(act func(*worker, *broker.Unit)) func() func() {
	return func() func() {
		s.sendSession(workQueue, "a", "m", "more")
		w := s.open(workQueue, 1)
		u := w.one("m")
		return func() { act(w, u) }
	}
}

// wakes prepares a scene in which nothing of workQueue can be delivered, lets a reader fall asleep, acts, and wants that
// reader to be woken and to get something.
func (s *stage) wakes(prepare func() (act func())) {
	s.t.Helper()
	count := s.listen(workQueue)
	act := prepare()
	lease := broker.ReaderOptions{Slots: 1, Limit: 1000, Lease: time.Hour}
	var w *worker
	if s.queue(workQueue).Status.CanReceive() {
		r, err := s.h.Broker.OpenReader(s.ctx, workQueue, lease)
		if err != nil {
			s.t.Fatalf("open reader: %v", err)
		}
		w = &worker{s: s, r: r, top: 1, slots: make([][]*broker.Unit, 1)}
		w.none()
		s.equal("asleep after an empty receive", s.snapshot(workQueue).Asleep, true)
	}
	before := count()
	act()
	s.until("a wake-up", func() bool { return count() > before })
	if w == nil {
		w = s.open(workQueue, 1)
	}
	if rep := w.receive(); len(rep.Units) != 1 {
		s.t.Fatalf("woken for nothing: %v", names(rep.Units))
	}
}

// wakeSleepers leaves workQueue asleep with one message stored in it.
func (s *stage) wakeSleepers() {
	s.send(workQueue, "m")
	w := s.open(workQueue, 2)
	u := w.one("m")
	w.none()
	s.status(workQueue, broker.QueueOff)
	w.want(broker.Released, release(u))
	w.close()
}

// listen counts the wake-ups of queue from now on; it returns when the subscription is known to work.
func (s *stage) listen(queue string) func() int {
	s.t.Helper()
	var (
		mu sync.Mutex
		n  int
	)
	count := func() int { mu.Lock(); defer mu.Unlock(); return n }
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.h.Peer.Wakes(ctx, func(q string) {
			mu.Lock()
			defer mu.Unlock()
			if q == queue {
				n++
			}
		})
	}()
	s.t.Cleanup(func() { cancel(); <-done })
	w := s.open(queue, 1)
	s.until("the first wake-up", func() bool {
		w.none()
		s.send(queue, "hello")
		w.commit(w.one("hello"))
		return count() > 0
	})
	w.close()
	return count
}

func holeEndedHides(s *stage) {
	c := s.begin()
	s.say(c, numbered("m", 5)...)
	s.send(workQueue, "p")
	s.end(s.target("m0"), 0)
	w := s.open(workQueue, 1)
	w.one("p") // behind five dead entries, with one slot
}

func holeFiledHides(s *stage) {
	s.sendSession(workQueue, "a", numbered("m", 6)...)
	s.send(workQueue, "p")
	w := s.open(workQueue, 1)
	w.one("m0")
	v := s.open(workQueue, 1)
	v.one("p") // behind five entries that are filed, with one slot
}
