package brokertest

import (
	"time"

	"parley/broker"
)

// poisonRules are the rules about poison messages (PM), and the traps of the settle script.
var poisonRules = []test{
	{"TestT_PM_1_a_commit_in_between_resets", func(s *stage) {
		s.sendSession(workQueue, "a", "m", "n")
		w := s.open(workQueue, 1)
		for _, id := range []string{"m", "n"} {
			for range 4 {
				w.fail(w.one(id))
			}
			w.commit(w.one(id))
		}
		s.equal("status", s.queue(workQueue).Status, broker.QueueActive)
	}},
	{"TestT_PM_2_five_times", fiveTimes},
	{"TestT_PM_3_handling_off", func(s *stage) {
		s.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.On, q.MaxDelivery = false, 100 })
		s.send(workQueue, "m")
		w := s.open(workQueue, 1)
		for range 20 {
			w.fail(w.one("m"))
		}
		s.equal("status", s.queue(workQueue).Status, broker.QueueActive)
		s.equal("events", len(s.events(workQueue, "queue_disabled")), 0)
	}},
	{"TestT_PM_4_empty_receives_count_nothing", func(s *stage) {
		w := s.open(workQueue, 1)
		for range 50 {
			w.none()
		}
		s.equal("status", s.queue(workQueue).Status, broker.QueueActive)
		s.equal("records", s.snapshot(workQueue).Attempts, 0)
	}},
	{"TestT_PM_6_sends_to_and_from_a_queue_that_is_off", sendsWhileOff},
	{"TestT_PM_7_ON_starts_from_0_and_arrivals_keep_their_order", onAgain},
	{"TestT_PM_10_other_queues_go_on", func(s *stage) {
		s.poison("m")
		s.send(plainQueue, "p")
		s.equal("other queue", s.drainAll(plainQueue), "[p]")
		s.equal("its status", s.queue(plainQueue).Status, broker.QueueActive)
	}},
	{"TestT_PM_11_peeking_counts_nothing", func(s *stage) {
		s.send(workQueue, "m")
		for range 10 {
			s.equal("peeked", s.peek(workQueue), "[m]")
		}
		s.equal("count", s.open(workQueue, 1).one("m").Messages[0].PoisonCount, 0)
	}},
	{"TestT_PM_12_scope", poisonScope},
	{"TestT_PM_13_a_timer_can_be_poison", func(s *stage) {
		s.timerScene()
		s.advance(2 * time.Second)
		w := s.open(workQueue, 1)
		for range 4 {
			w.fail(w.one("Timer"))
		}
		w.want(broker.QueueTurned, failure(w.one("Timer")))
	}},
	{"TestT_PM_14_END_WITH_ERROR_127_by_an_operator", endByOperator},
	{"TestPM_dead_letter_wins_a_tie", tie},
	{"TestPM_a_pause_grows_up_to_its_limit", growingPause},
	{"TestTrap2_a_handover_and_a_receive_in_one_turn", handOverAndReceive},
	{"TestTrap3_a_unit_with_two_conversations", twoConversations},
}

// poison turns workQueue OFF with a message of its own session.
func (s *stage) poison(id string) {
	s.t.Helper()
	s.sendSession(workQueue, id, id)
	w := s.open(workQueue, 1)
	for range 4 {
		w.fail(w.one(id))
	}
	w.want(broker.QueueTurned, failure(w.one(id)))
	w.close()
}

func fiveTimes(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1")
	w := s.open(workQueue, 2)
	for range 4 {
		w.fail(w.one("m0"))
	}
	rep := w.settleTake(failure(w.one("m0")))
	s.equal("consequence", rep.Results[0].Consequence, broker.QueueTurned)
	s.equal("a sixth delivery", len(rep.Units), 0)
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
	s.equal("still first", s.peek(workQueue), "[m0 m1]")
}

func sendsWhileOff(s *stage) {
	s.say(s.begin(), "q")
	h := s.target("q")
	s.equal("received", s.drainAll(workQueue), "[q]")
	s.poison("m")
	_, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1})
	s.wantErr("receive", err, broker.ErrQueueDisabled)
	_, err = s.h.Broker.Send(s.ctx, workQueue, message("external"))
	s.wantErr("external send", err, broker.ErrQueueDisabled)
	c := s.begin()
	s.say(c, "parked")
	s.equal("parked at the sender", s.queue(homeQueue).Counts.Transmission, 1)
	s.equal("why", len(s.queue(homeQueue).Transmit), 1)
	s.say(h, "from a queue that is off")
	s.equal("home", s.drainAll(homeQueue), "[from a queue that is off]")
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Retention = true })
	_, err = s.h.Broker.SendOn(s.ctx, h, message("with retention"))
	s.wantErr("send from a queue that is off and retains", err, broker.ErrSendRetention)
}

func onAgain(s *stage) {
	s.poison("m")
	c := s.begin()
	s.say(c, numbered("p", 3)...)
	s.status(workQueue, broker.QueueActive)
	w := s.open(workQueue, 1)
	for i := range 4 {
		u := w.one("m")
		s.equal("count from 0", u.Messages[0].PoisonCount, i)
		w.fail(u)
	}
	s.equal("status", s.queue(workQueue).Status, broker.QueueActive)
	w.commit(w.one("m"))
	s.transmitAll(homeQueue)
	s.equal("in order", w.drain(), "[p0 p1 p2]")
}

func poisonScope(s *stage) {
	five := func() {
		s.send(workQueue, numbered("m", 5)...)
		w := s.open(workQueue, 5)
		for _, u := range w.receive().Units {
			w.settle(failure(u))
		}
		w.close()
	}
	five()
	s.equal("message scope", s.queue(workQueue).Status, broker.QueueActive)
	s.drainAll(workQueue)
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.Scope = "queue" })
	five()
	s.equal("queue scope", s.queue(workQueue).Status, broker.QueueOff)
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
}

func endByOperator(s *stage) {
	c := s.begin()
	s.say(c, "bad", "behind")
	w := s.open(workQueue, 1)
	for range 4 {
		w.fail(w.one("bad"))
	}
	w.want(broker.QueueTurned, failure(w.one("bad")))
	w.close()
	s.end(s.target("bad"), 127) // works while the queue is off
	s.status(workQueue, broker.QueueActive)
	s.equal("own handler hears", s.drainAll(workQueue), "[]")
	v := s.open(homeQueue, 1)
	m := v.one("Error").Messages[0]
	s.equal("code", contains(string(m.Body), "<Code>127</Code>"), true)
}

func tie(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 5 })
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	for range 4 {
		w.fail(w.one("m"))
	}
	w.want(broker.DeadLettered, failure(w.one("m")))
	s.equal("status", s.queue(workQueue).Status, broker.QueueActive)
	s.equal("dead letters", len(s.dead(workQueue)), 1)
}

func growingPause(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) {
		q.Retry = broker.Retry{Initial: time.Second, Max: 4 * time.Second, Multiplier: 2}
	})
	s.send(plainQueue, "m")
	w := s.open(plainQueue, 1)
	for _, sec := range []int{1, 2, 4, 4} {
		w.fail(w.one("m"))
		s.advance(time.Duration(sec)*time.Second - time.Millisecond)
		w.none()
		s.advance(time.Millisecond)
	}
	w.commit(w.one("m"))
}

func handOverAndReceive(s *stage) {
	s.sendSession(workQueue, "a", "m0")
	w := s.open(workQueue, 3)
	u := w.one("m0")
	s.sendSession(workQueue, "a", "m1")
	w.none() // files m1
	s.sendSession(workQueue, "a", "m2", "m3")
	rep := w.settleTake(commit(u)) // hands m1 over and reads m2 and m3 in the same step
	s.equal("handed out", names(rep.Units), "[m1]")
	s.snapshot(workQueue)
	w.commit(rep.Units[0])
	s.equal("the rest", w.drain(), "[m2 m3]")
}

func twoConversations(s *stage) {
	s.sharedGroup()
	w := s.open(homeQueue, 1)
	w.fileAll()
	w.close()
	w = s.open(homeQueue, 2)
	w.top = 3
	u := w.one("a0", "a1", "b0")
	rep := w.settleTake(commit(u))
	s.equal("handed over once", names(rep.Units), "[b1]")
	s.snapshot(homeQueue)
	w.commit(rep.Units[0])
	s.equal("left", len(s.snapshot(homeQueue).Messages), 0)
}
