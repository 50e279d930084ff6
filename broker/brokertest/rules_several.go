package brokertest

import (
	"fmt"
	"slices"
	"time"

	"parley/broker"
)

// severalRules are the rules about units of several messages that fail: each message is counted, none is carried to a limit, and
// what was rolled back is alone until it is settled.
var severalRules = []test{
	{"TestDC_one_bad_message_of_ten_is_the_only_dead_letter", func(s *stage) { oneBadOfTen(s, plainQueue) }},
	{"TestPM_one_bad_message_of_ten_turns_the_queue_off", oneBadOfTenOff},
	{"TestDC_a_unit_of_several_carries_none_to_a_limit_of_one", severalAtLimitOne},
	{"TestPM_a_unit_of_several_carries_none_to_a_limit_of_one", severalAtPoisonOne},
	{"TestPM_12_a_unit_of_several_is_no_fifth_rollback_of_the_queue", severalInQueueScope},
	{"TestDC_a_death_in_a_unit_of_several_carries_none_to_a_limit", severalDie},
	{"TestDC_an_uncertain_death_in_units_of_several", severalUncertain},
	{"TestRC_what_failed_is_alone_until_it_is_settled", aloneUntilSettled},
	{"TestRC_what_overtakes_what_failed_comes_without_it", aloneBehindTimer},
	{"TestRC_what_failed_is_alone_in_its_group_of_several_conversations", aloneInSharedGroup},
}

// tenOfOneSession sends ok1 … ok4 BAD ok6 … ok10 in one session and returns the good ones.
func (s *stage) tenOfOneSession(queue string) (good []string) {
	s.t.Helper()
	var ids []string
	for i := 1; i <= 10; i++ {
		id := fmt.Sprint("ok", i)
		if i == 5 {
			id = "BAD"
		} else {
			good = append(good, id)
		}
		ids = append(ids, id)
	}
	s.sendSession(queue, "a", ids...)
	return good
}

// handleTen lets a handler that fails because of BAD work on queue until nothing comes, and returns what committed, in order, and
// how often each message was delivered.
func (s *stage) handleTen(queue string) (committed []string, deliveries map[string]int) {
	s.t.Helper()
	deliveries = map[string]int{}
	w := s.open(queue, 2)
	w.top = 10
	for range 1000 {
		rep := w.settleTake()
		if len(rep.Units) == 0 {
			w.close()
			return committed, deliveries
		}
		for _, u := range rep.Units {
			ids := unitNames(u)
			for _, id := range ids {
				deliveries[id]++
			}
			if slices.Contains(ids, "BAD") {
				w.settle(failure(u))
				continue
			}
			w.commit(u)
			committed = append(committed, ids...)
		}
		s.snapshot(queue)
	}
	s.t.Fatalf("the queue never gets empty")
	return nil, nil
}

func oneBadOfTen(s *stage, queue string) {
	good := s.tenOfOneSession(queue)
	committed, deliveries := s.handleTen(queue)
	s.equal("committed in order", committed, good)
	for _, id := range good {
		s.equal("deliveries of "+id, deliveries[id], 2)
	}
	s.equal("deliveries of BAD", deliveries["BAD"], 10)
	dead := s.dead(queue)
	s.equal("dead letters", []any{len(dead), string(dead[0].Body), dead[0].DeliveryCount, dead[0].Dead.Reason},
		[]any{1, "BAD", 10, broker.ReasonMaxDeliveryCount})
	s.equal("records", s.snapshot(queue).Attempts, 0)
	s.audit()
}

func oneBadOfTenOff(s *stage) {
	good := s.tenOfOneSession(workQueue)
	committed, deliveries := s.handleTen(workQueue)
	s.equal("committed before it", committed, good[:4])
	s.equal("deliveries of BAD", deliveries["BAD"], 5)
	off := s.events(workQueue, "queue_disabled")
	s.equal("who turned it off", []any{len(off), off[0].Fields["sequence_number"]}, []any{1, "5"})
	s.status(workQueue, broker.QueueActive)
	more, again := s.handleTen(workQueue)
	s.equal("until the tenth delivery of BAD", []any{more, again["BAD"], len(s.dead(workQueue))}, []any{good[4:], 5, 1})
	for _, id := range good {
		s.equal("deliveries of "+id, deliveries[id]+again[id], 2)
	}
	s.audit()
}

func severalAtLimitOne(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 1 })
	s.sendSession(plainQueue, "a", "m0", "m1")
	w := s.open(plainQueue, 1)
	w.top = 2
	w.fail(w.one("m0", "m1"))
	s.equal("dead letters of a unit of two", len(s.dead(plainQueue)), 0)
	u := w.one("m0")
	s.equal("both are counted", []int{u.Messages[0].DeliveryCount, s.stored(plainQueue, "m1").DeliveryCount}, "[1 1]")
	w.want(broker.DeadLettered, failure(u))
	w.commit(w.one("m1"))
	s.equal("dead letters", []any{len(s.dead(plainQueue)), s.dead(plainQueue)[0].DeliveryCount}, []any{1, 2})
	s.audit()
}

func severalAtPoisonOne(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.Rollbacks = 1 })
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 1)
	w.top = 2
	w.fail(w.one("m0", "m1"))
	s.equal("status after a unit of two", s.queue(workQueue).Status, broker.QueueActive)
	s.equal("rollbacks", []int{s.stored(workQueue, "m0").PoisonCount, s.stored(workQueue, "m1").PoisonCount}, "[1 1]")
	w.commit(w.one("m0"))
	w.want(broker.QueueTurned, failure(w.one("m1")))
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
}

func severalInQueueScope(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.Scope, q.Poison.Rollbacks = "queue", 2 })
	for _, session := range []string{"a", "b", "c"} {
		s.sendSession(workQueue, session, session+"0", session+"1")
	}
	w := s.open(workQueue, 3)
	w.top = 2
	for _, u := range w.receive().Units {
		w.fail(u)
	}
	s.equal("status after three units of two", s.queue(workQueue).Status, broker.QueueActive)
	w.want(broker.QueueTurned, failure(w.receive().Units[0]))
}

func severalDie(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 1 })
	s.sendSession(plainQueue, "a", "m0", "m1", "m2")
	w := s.open(plainQueue, 1)
	w.top = 2
	w.one("m0", "m1")
	rep := s.expire()
	s.equal("deaths", []any{len(rep.DeadReaders), rep.DeadReaders[0].Consequence}, []any{2, broker.RolledBack})
	w = s.open(plainQueue, 1)
	w.top = 3
	u := w.one("m0")
	s.equal("count", u.Messages[0].DeliveryCount, 1)
	s.expire() // it was alone this time
	s.equal("dead letters", []any{len(s.dead(plainQueue)), string(s.dead(plainQueue)[0].Body)}, []any{1, "m0"})
	w = s.open(plainQueue, 1)
	w.top = 3
	w.commit(w.one("m1"))
	w.commit(w.one("m2"))
	s.audit()
}

func severalUncertain(s *stage) {
	for _, session := range []string{"a", "b"} {
		s.sendSession(workQueue, session, session+"0", session+"1")
	}
	w := s.open(workQueue, 1)
	w.top = 2
	s.equal("window", names(w.window(0, 2)), "[a0+a1 b0+b1]")
	s.expire()
	w = s.open(workQueue, 2)
	w.top = 2
	rep := w.receive()
	s.equal("one by one", names(rep.Units), "[a0 b0]")
	for _, u := range rep.Units {
		s.equal("counts", []int{u.Messages[0].DeliveryCount, u.Messages[0].PoisonCount}, "[0 0]")
		w.commit(u)
	}
	s.equal("the rest", names(w.receive().Units), "[a1 b1]")
}

func aloneUntilSettled(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 1)
	w.top = 4
	w.fail(w.one("m0", "m1"))
	w.want(broker.Released, release(w.one("m0")))
	s.status(workQueue, broker.QueueOff)
	s.status(workQueue, broker.QueueActive)   // rollbacks count from 0 again, the failed delivery is remembered
	s.sendSession(workQueue, "a", "m2", "m3") // would join
	u := w.one("m0")
	s.equal("counts", []int{u.Messages[0].DeliveryCount, u.Messages[0].PoisonCount}, "[1 0]")
	w.close()
	w = s.open(workQueue, 1)
	w.top = 4
	w.want(broker.DeadLettered, deadLetter(w.one("m0")))
	rep := w.settleTake(commit(w.one("m1"))) // hands over what waits
	s.equal("what never failed", names(rep.Units), "[m2+m3]")
	w.commit(rep.Units[0])
	s.equal("records", s.snapshot(workQueue).Attempts, 0)
}

// aloneBehindTimer: a timer that overtakes messages that failed is no company for them.
func aloneBehindTimer(s *stage) {
	h := s.begunTarget("m0", "m1")
	w := s.open(workQueue, 1)
	w.top = 3
	w.fail(w.one("m0", "m1"))
	s.timer(h, time.Second)
	s.advance(time.Second)
	for _, id := range []string{"Timer", "m0", "m1"} {
		w.commit(w.one(id))
	}
}

func aloneInSharedGroup(s *stage) {
	s.sharedGroup()
	w := s.open(homeQueue, 1)
	w.fileAll()
	w.close()
	w = s.open(homeQueue, 1)
	w.top = 3
	w.fail(w.one("a0", "a1", "b0"))
	for _, id := range []string{"a0", "b0", "a1", "b1"} { // the conversation whose first message is the oldest goes first
		w.commit(w.one(id))
	}
}

// begun begins a dialog and says ids on it.
func (s *stage) begun(ids ...string) string {
	s.t.Helper()
	c := s.begin()
	s.say(c, ids...)
	return c
}
