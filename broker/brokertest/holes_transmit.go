package brokertest

import (
	"fmt"
	"time"

	"parley/broker"
)

// transmitHoles are those of the way between two queues.
var transmitHoles = []test{
	{"TestH13_a_direct_write_does_not_overtake", holeOvertake},
	{"TestH13_what_a_handler_sends_to_a_queue_keeps_its_order", holeOvertakeQueue},
	{"TestH14_a_transmitter_that_dies_doubles_nothing", holeTransmitterDies},
	{"TestH14_a_transmitter_whose_reply_is_lost_doubles_nothing", holeTransmitterReply},
	{"TestH14_a_plain_message_is_not_doubled_after_hours", holePlainTwice},
	{"TestH15_a_resend_does_not_revive_a_conversation", holeRevive},
	{"TestH16_a_late_write_delivers_nothing_that_was_delivered", holeLateWrite},
	{"TestH16_a_late_write_delivers_nothing_that_was_given_up", holeZombie},
	{"TestH17_a_transmitter_that_dies_giving_up_loses_nothing", holeGiveUpDies},
}

func holeOvertake(s *stage) {
	c := s.begin()
	s.status(workQueue, broker.QueueOff)
	s.say(c, "m0")
	s.equal("in transmission", s.endpoint(c).InTransmission, 1)
	s.status(workQueue, broker.QueueActive)
	s.say(c, "m1") // the queue takes it now, but m0 has to come first
	s.equal("in transmission", s.endpoint(c).InTransmission, 2)
	w := s.open(workQueue, 1)
	w.none()
	s.transmitAll(homeQueue)
	s.equal("order", w.drain(), "[m0 m1]")
	s.say(c, "m2")
	s.equal("direct again", w.drain(), "[m2]")
}

// holeOvertakeQueue: a session's message waits in transmission since its queue was off; the next is sent when it is on.
func holeOvertakeQueue(s *stage) {
	s.send(plainQueue, "p0", "p1", "p2")
	w := s.open(plainQueue, 1)
	next := func(n int) {
		e := sendTo(sinkQueue, fmt.Sprint("m", n))
		e.Message.SessionID = "s"
		w.commit(w.one(fmt.Sprint("p", n)), e)
	}
	s.status(sinkQueue, broker.QueueOff)
	next(0)
	s.status(sinkQueue, broker.QueueActive)
	next(1) // the queue takes it now, but m0 has to come first
	s.equal("in transmission", s.queue(plainQueue).Counts.Transmission, int64(2))
	s.transmitAll(plainQueue)
	next(2)
	s.equal("direct again", s.queue(plainQueue).Counts.Transmission, int64(0))
	s.equal("order", s.drainAll(sinkQueue), "[m0 m1 m2]")
}

// transmitAll keeps house until nothing of queue waits in transmission. The back-off reaches 64 s at most.
func (s *stage) transmitAll(queue string) {
	s.t.Helper()
	for range 40 {
		if s.queue(queue).Counts.Transmission == 0 {
			return
		}
		s.h.Advance(5 * time.Second)
		if _, err := s.h.Peer.Keep(s.ctx); err != nil {
			s.t.Fatalf("keep: %v", err)
		}
	}
	s.t.Fatalf("transmission never ends: %+v", s.queue(queue).Transmit)
}

// faultyCalls runs scene with the fault put at the 1st, 2nd, 3rd … call of the housekeeping, until a pass has fewer.
func faultyCalls(s *stage, scene func(k int, keep func())) {
	s.t.Helper()
	hit := 0
	for k := range 100 {
		struck := false
		scene(k, func() {
			_, _ = s.h.Broker.Keep(s.ctx) // it may say that the connection broke
			struck = !s.h.Calm()
		})
		if !struck {
			if hit == 0 {
				s.t.Fatalf("no call of the housekeeping was hit")
			}
			return
		}
		hit++
	}
	s.t.Fatalf("one pass of housekeeping makes more than 100 calls")
}

// parkedSends leaves three messages of a dialog in transmission to a queue that is on again, named after k.
func (s *stage) parkedSends(k int) (ids []string) {
	ids = numbered(fmt.Sprintf("k%d-", k), 3)
	c := s.begin()
	s.status(workQueue, broker.QueueOff)
	s.say(c, ids...)
	s.status(workQueue, broker.QueueActive)
	s.h.Advance(65 * time.Second)
	return ids
}

func holeTransmitterDies(s *stage) {
	faultyCalls(s, func(k int, keep func()) {
		ids := s.parkedSends(k)
		s.h.LoseCall(k, 100) // from its k-th call on this transmitter is dead
		keep()
		s.transmitAll(homeQueue)
		s.equal(fmt.Sprint("arrived after a death at call ", k), s.drainAll(workQueue), ids)
	})
}

func holeTransmitterReply(s *stage) {
	faultyCalls(s, func(k int, keep func()) {
		ids := s.parkedSends(k)
		s.h.LoseReply(k, 1)
		keep()
		s.transmitAll(homeQueue)
		s.equal(fmt.Sprint("arrived after a lost reply of call ", k), s.drainAll(workQueue), ids)
	})
}

// drainAll commits all of queue with a reader of its own.
func (s *stage) drainAll(queue string) []string {
	s.t.Helper()
	w := s.open(queue, 1)
	order := w.drain()
	w.close()
	return order
}

func holePlainTwice(s *stage) {
	faultyCalls(s, func(k int, keep func()) {
		ids := numbered(fmt.Sprintf("k%d-", k), 2)
		s.send(plainQueue, "p")
		w := s.open(plainQueue, 1)
		s.status(sinkQueue, broker.QueueOff)
		u := w.one("p")
		w.commit(u, sendTo(sinkQueue, ids[0]), sendTo(sinkQueue, ids[1]))
		w.close()
		s.status(sinkQueue, broker.QueueActive)
		s.h.Advance(65 * time.Second)
		s.h.LoseCall(k, 100)
		keep()
		s.h.Advance(3 * time.Hour)
		s.transmitAll(plainQueue)
		s.equal(fmt.Sprint("arrived after a death at call ", k), s.drainAll(sinkQueue), ids)
	})
}

// sendTo is the effect that sends a plain message named id to queue.
func sendTo(queue, id string) broker.Effect {
	return broker.Effect{Kind: broker.EffectSendTo, Queue: queue, Message: message(id)}
}

func holeRevive(s *stage) {
	faultyCalls(s, func(k int, keep func()) {
		c := s.begin()
		id := fmt.Sprint("k", k)
		s.status(workQueue, broker.QueueOff)
		s.say(c, id)
		s.status(workQueue, broker.QueueActive)
		s.h.Advance(65 * time.Second)
		s.h.LoseCall(k, 100)
		keep()
		arrived := s.stored(workQueue, id)
		if arrived != nil {
			s.end(arrived.Conversation, 127)
		}
		s.h.Advance(31 * time.Minute) // the closed endpoint is gone
		s.transmitAll(homeQueue)
		want := "[" + id + "]"
		if arrived != nil {
			want = "[]"
		}
		s.equal(fmt.Sprint("delivered after a death at call ", k), s.drainAll(workQueue), want)
		for h := range s.snapshot(workQueue).Conversations {
			s.end(h, 0)
		}
	})
}

func holeLateWrite(s *stage) {
	for k := range 100 {
		ids := s.parkedSends(k)
		deliver := s.h.HoldCall(k)
		_, _ = s.h.Broker.Keep(s.ctx)
		s.h.Calm()
		s.transmitAll(homeQueue)
		got := s.drainAll(workQueue)
		late := deliver()
		s.snapshot(workQueue)
		s.equal(fmt.Sprint("arrived before and after the late call ", k), append(got, s.drainAll(workQueue)...), ids)
		if !late {
			return
		}
	}
	s.t.Fatalf("one pass of housekeeping makes more than 100 calls")
}

// sendToSink leaves one message named id in transmission from plainQueue to sinkQueue, which is off.
func (s *stage) sendToSink(id string) {
	s.t.Helper()
	s.status(sinkQueue, broker.QueueOff)
	s.send(plainQueue, "p")
	w := s.open(plainQueue, 1)
	w.commit(w.one("p"), sendTo(sinkQueue, id))
	w.close()
	s.h.Advance(65 * time.Second)
}

// giveUp deletes the target queue, and the other client's housekeeping gives up what was on the way to it.
func (s *stage) giveUp() {
	s.t.Helper()
	if err := s.h.Broker.DeleteQueue(s.ctx, sinkQueue); err != nil {
		s.t.Fatalf("delete: %v", err)
	}
	s.until("given up", func() bool {
		s.h.Advance(65 * time.Second)
		if _, err := s.h.Peer.Keep(s.ctx); err != nil {
			s.t.Fatalf("keep: %v", err)
		}
		return s.queue(plainQueue).Counts.Transmission == 0
	})
}

// remake makes the sink queue anew.
func (s *stage) remake() {
	s.t.Helper()
	s.apply(broker.Definitions{Queues: []broker.QueueSettings{atOnce(broker.DefaultQueue(sinkQueue, false))}})
}

// copies is how often a message of plainQueue's transmission exists: given up or delivered.
func (s *stage) copies(id string) int {
	s.t.Helper()
	n := 0
	for _, q := range []string{plainQueue, sinkQueue} {
		for _, m := range s.snapshot(q).Messages {
			if m.MessageID == id {
				n++
			}
		}
	}
	return n
}

func holeZombie(s *stage) {
	for k := range 100 {
		id := fmt.Sprint("k", k)
		s.sendToSink(id)
		deliver := s.h.HoldCall(k)
		_, _ = s.h.Broker.Keep(s.ctx) // this transmitter stalls in its k-th call
		s.h.Calm()
		s.giveUp()
		s.remake()
		late := deliver()
		s.equal(fmt.Sprint("copies after the late call ", k), s.copies(id), 1)
		if !late {
			return
		}
	}
	s.t.Fatalf("one pass of housekeeping makes more than 100 calls")
}

func holeGiveUpDies(s *stage) {
	faultyCalls(s, func(k int, keep func()) {
		id := fmt.Sprint("k", k)
		s.sendToSink(id)
		if err := s.h.Broker.DeleteQueue(s.ctx, sinkQueue); err != nil {
			s.t.Fatalf("delete: %v", err)
		}
		s.h.LoseCall(k, 100)
		keep()
		s.remake()
		s.transmitAll(plainQueue)
		s.equal(fmt.Sprint("copies after a death at call ", k), s.copies(id), 1)
	})
}
