package brokertest

import (
	"time"

	"parley/broker"
)

// transmitRules are the rules about the transmission queue (TX).
var transmitRules = []test{
	{"TestTX_2_pauses_of_4_8_16_32_then_64_seconds", transmitPauses},
	{"TestTX_3_and_SN_8_an_unknown_service_is_no_error", unknownService},
	{"TestTX_order_per_conversation_survives_every_refusal", func(s *stage) {
		a, b := s.begin(), s.begin()
		s.status(workQueue, broker.QueueOff)
		s.say(a, "a0")
		s.say(b, "b0")
		s.keepFor(20 * time.Second)
		s.say(a, "a1")
		s.say(b, "b1")
		s.end(a, 0)
		s.status(workQueue, broker.QueueActive)
		s.transmitAll(homeQueue)
		s.say(b, "b2")
		order := s.drainAll(workQueue)
		s.equal("a", only(order, "a0", "a1", "EndDialog"), "[a0 a1 EndDialog]")
		s.equal("b", only(order, "b0", "b1", "b2"), "[b0 b1 b2]")
	}},
	{"TestTX_one_target_that_is_off_holds_up_no_other", func(s *stage) {
		s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Sink", Queue: sinkQueue, Contracts: []string{broker.ContractDefault}}}})
		s.status(workQueue, broker.QueueOff)
		s.say(s.begin(), "parked")
		s.keep()
		s.say(s.beginWith("//t/Sink", ""), "through")
		s.equal("other target", s.drainAll(sinkQueue), "[through]")
	}},
	{"TestTX_turning_ON_tries_at_once", func(s *stage) {
		s.status(workQueue, broker.QueueOff)
		s.say(s.begin(), "m")
		s.keepFor(2 * time.Minute) // the pause is 64 s by now
		s.status(workQueue, broker.QueueActive)
		s.keep()
		s.equal("received", s.drainAll(workQueue), "[m]")
	}},
	{"TestTX_a_pause_starts_over_after_a_success", func(s *stage) {
		c := s.begin()
		for range 2 {
			s.status(workQueue, broker.QueueOff)
			s.say(c, "m")
			s.equal("first pause", s.pauses(1), []time.Duration{4 * time.Second})
			s.status(workQueue, broker.QueueActive)
			s.transmitAll(homeQueue)
		}
	}},
	{"TestTX_END_WITH_ERROR_drops_what_waits_for_an_unknown_service", func(s *stage) {
		c := s.beginWith("//t/Late", "")
		s.say(c, "m0", "m1")
		s.end(c, 12)
		s.keep()
		s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Late", Queue: workQueue, Contracts: []string{broker.ContractDefault}}}})
		s.transmitAll(homeQueue)
		s.equal("received", s.drainAll(workQueue), "[]") // the target never heard of the conversation: it has nobody to tell
		s.snapshot(homeQueue)
	}},
	{"TestTX_sends_of_a_handler_to_a_queue_that_is_off", func(s *stage) {
		s.status(sinkQueue, broker.QueueOff)
		s.send(plainQueue, "p")
		w := s.open(plainQueue, 1)
		w.commit(w.one("p"), sendTo(sinkQueue, "x0"), sendTo(sinkQueue, "x1"))
		s.equal("why", s.queue(plainQueue).Transmit[0].Status, "the queue sink is off")
		s.status(sinkQueue, broker.QueueActive)
		s.transmitAll(plainQueue)
		s.equal("received", s.drainAll(sinkQueue), "[x0 x1]")
	}},
	{"TestTX_END_drops_messages_for_this_side_that_still_wait", func(s *stage) {
		c := s.begin()
		s.say(c, "m0")
		h := s.target("m0")
		s.status(homeQueue, broker.QueueOff)
		s.say(h, "r0", "r1")
		s.end(c, 0)
		s.status(homeQueue, broker.QueueActive)
		s.transmitAll(workQueue)
		s.equal("received by the ended side", s.drainAll(homeQueue), "[]")
		s.equal("the other side", []any{s.drainAll(workQueue), s.endpoint(h).State}, "[[m0 EndDialog] DI]")
	}},
}

// only is the elements of list that are among those named.
func only(list []string, named ...string) []string {
	var out []string
	for _, v := range list {
		for _, n := range named {
			if v == n {
				out = append(out, v)
			}
		}
	}
	return out
}

// keepFor keeps house every second for d.
func (s *stage) keepFor(d time.Duration) {
	s.t.Helper()
	for range d / time.Second {
		s.advance(time.Second)
	}
}

// pauses keeps house until homeQueue's only transmission was tried n times, and returns the pause after each.
func (s *stage) pauses(n int) []time.Duration {
	s.t.Helper()
	var got []time.Duration
	for range n {
		s.keep()
		next := s.queue(homeQueue).Transmit[0].NextTry
		wait := next.Sub(s.snapshot(homeQueue).Now)
		got = append(got, wait)
		s.advance(wait - time.Millisecond)
		s.equal("tried before its time", s.queue(homeQueue).Transmit[0].NextTry, next)
		s.h.Advance(time.Millisecond)
	}
	return got
}

func transmitPauses(s *stage) {
	c := s.begin()
	s.status(workQueue, broker.QueueOff)
	s.say(c, "m")
	info := s.queue(homeQueue).Transmit
	s.equal("targets", len(info), 1)
	s.equal("what waits", []any{info[0].Target, info[0].Waiting, info[0].Status}, []any{workSvc, 1, "the queue work is off"})
	s.equal("pauses", s.pauses(7), "[4s 8s 16s 32s 1m4s 1m4s 1m4s]")
	s.equal("why", s.queue(homeQueue).Transmit[0].Status, "the queue work is off")
	s.status(workQueue, broker.QueueActive)
	s.keep()
	s.equal("received", s.drainAll(workQueue), "[m]")
	s.equal("nothing waits", len(s.queue(homeQueue).Transmit), 0)
}

func unknownService(s *stage) {
	c := s.beginWith("//t/Late", "")
	s.say(c, "m0", "m1")
	e := s.endpoint(c)
	s.equal("sent", []any{e.State, e.InTransmission, e.NextSend}, "[CO 2 2]")
	s.keepFor(10 * time.Second)
	info := s.queue(homeQueue).Transmit
	s.equal("why", []any{info[0].Target, info[0].Waiting, info[0].Status}, "[//t/Late 2 no queue serves //t/Late]")
	s.equal("initiator hears", s.drainAll(homeQueue), "[]")
	s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Late", Queue: workQueue, Contracts: []string{broker.ContractDefault}}}})
	s.keep() // it is tried at once
	s.equal("received", s.drainAll(workQueue), "[m0 m1]")
	s.equal("in transmission", s.endpoint(c).InTransmission, 0)
}
