package brokertest

import (
	"time"

	"parley/broker"
)

// parkRules are the rules of on_dead_letter: park (decisions, Dead-letter in a conversation).
var parkRules = []test{
	{"TestPark_nothing_passes_a_dead_letter", nothingPasses},
	{"TestPark_a_dialog_waits_for_its_dead_letter", dialogParked},
	{"TestPark_resubmitted_in_any_order_they_come_back_in_theirs", anyOrder},
	{"TestPark_units_keep_the_place_of_what_came_back", placesInUnits},
	{"TestPark_what_came_back_can_die_again", diesAgain},
	{"TestPark_a_purge_lets_go_on", func(s *stage) {
		s.parked("m0", "m1")
		n, err := s.h.Broker.Purge(s.ctx, broker.FormatDeadLetterPath(workQueue))
		s.equal("purged", []any{n, err}, []any{1, nil})
		s.equal("goes on", s.drainAll(workQueue), "[m1]")
		s.released()
	}},
	{"TestPark_a_dead_letter_that_is_received_and_settled_lets_go_on", receivedDead},
	{"TestPark_an_END_lets_go_on", endOfParked},
	{"TestPark_timers_and_Errors_wait_too", timersWait},
	{"TestPark_a_parked_conversation_stays_in_its_group", movedWhileParked},
	{"TestPark_a_host_that_dies_at_the_limit_parks", diesAtLimit},
	{"TestPark_no_pause_runs_beside_it", noPauseBeside},
	{"TestPark_an_expired_message_parks_nobody", expiredParksNobody},
	{"TestPark_plain_messages_are_nobodys", func(s *stage) {
		s.alter(plainQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "park" })
		s.send(plainQueue, "p0", "p1")
		w := s.open(plainQueue, 1)
		w.want(broker.DeadLettered, deadLetter(w.one("p0")))
		s.equal("next", w.drain(), "[p1]")
		s.equal("parked", s.queue(plainQueue).Parked, 0)
		s.audit()
	}},
	{"TestPark_a_setting_that_changes_leaves_what_is_parked", func(s *stage) {
		s.parked("m0", "m1")
		s.alter(workQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "continue" })
		s.equal("still parked", s.drainAll(workQueue), "[]")
		s.resubmit(1)
		s.equal("goes on", s.drainAll(workQueue), "[m0 m1]")
		s.released()
	}},
}

// deadLetter is the settlement of a handler that wants the unit dead-lettered.
func deadLetter(u *broker.Unit) broker.Settlement {
	return broker.Settlement{Unit: u, Verdict: broker.VerdictDeadLetter, Reason: "Unwanted"}
}

// parking lets workQueue park.
func (s *stage) parking() {
	s.t.Helper()
	s.alter(workQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "park" })
}

// parked sends messages of a session to workQueue, the first of which becomes a dead letter.
func (s *stage) parked(ids ...string) {
	s.t.Helper()
	s.parking()
	s.sendSession(workQueue, "a", ids...)
	w := s.open(workQueue, 1)
	w.want(broker.DeadLettered, deadLetter(w.one(ids[0])))
	w.none()
	w.close()
	s.snapshot(workQueue)
	s.audit()
}

// resubmit brings back dead letters of workQueue.
func (s *stage) resubmit(numbers ...int64) {
	s.t.Helper()
	for _, n := range numbers {
		if _, err := s.h.Broker.Resubmit(s.ctx, workQueue, n); err != nil {
			s.t.Fatalf("resubmit %d: %v", n, err)
		}
		s.snapshot(workQueue)
	}
}

// released checks that nothing of workQueue is parked and nothing is left over.
func (s *stage) released() {
	s.t.Helper()
	snap := s.snapshot(workQueue)
	s.equal("parked", []any{s.queue(workQueue).Parked, len(snap.Parked), len(snap.Locks)}, []any{0, 0, 0})
	s.audit()
}

func nothingPasses(s *stage) {
	s.parked("m0", "m1")
	s.sendSession(workQueue, "a", "m2") // arrives while it is parked
	s.sendSession(workQueue, "b", "other")
	s.equal("other sessions go on", s.drainAll(workQueue), "[other]")
	q := s.queue(workQueue)
	s.equal("queue show", q.Parked, 1)
	s.equal("which", q.ParkedFirst, []broker.ParkedGroup{{SessionID: "a", DeadLetters: []int64{1}, Waiting: 2}})
	s.equal("dead letter", s.dead(workQueue)[0].Dead.Parks, true)
	s.equal("event", s.events(workQueue, "conversation_parked")[0].Fields["session_id"], "a")
	w := s.open(workQueue, 1)
	w.none()
	s.resubmit(1)
	s.equal("in its old place", w.drain(), "[m0 m1 m2]")
	s.released()
}

func dialogParked(s *stage) {
	s.parking()
	c := s.begin()
	s.say(c, "m0", "m1", "m2")
	w := s.open(workQueue, 1)
	w.commit(w.one("m0"))
	u := w.one("m1")
	h := u.Messages[0].Conversation
	w.want(broker.DeadLettered, deadLetter(u))
	w.none()
	sides, err := s.h.Broker.(broker.DialogInspector).InspectDialog(s.ctx, h, 5)
	if err != nil {
		s.t.Fatal(err)
	}
	s.equal("dialog show", sides[0].ParkedBy, "[2]")
	s.equal("waits", s.endpoint(h).Waiting, 1)
	s.resubmit(2)
	s.equal("waits again", s.endpoint(h).Waiting, 2)
	s.end(c, 0)
	s.equal("in its old place", w.drain(), "[m1 m2 EndDialog]")
	s.equal("waits no more", s.endpoint(h).Waiting, 0)
	s.released()
}

// anyOrder has three dead letters of one session: two of a unit that failed as one, and one that came back before.
func anyOrder(s *stage) {
	s.parking()
	s.sendSession(workQueue, "a", numbered("m", 5)...)
	w := s.open(workQueue, 1)
	w.top = 3
	w.want(broker.DeadLettered, deadLetter(w.one("m0", "m1", "m2")))
	s.resubmit(3)
	w.none()
	s.resubmit(1)
	w.none()
	s.resubmit(2)
	w.top = 1
	s.equal("order", w.drain(), "[m0 m1 m2 m3 m4]")
	s.released()
}

func placesInUnits(s *stage) {
	s.parking()
	for _, dies := range []bool{false, true} {
		s.say(s.begin(), numbered("m", 4)...)
		w := s.open(workQueue, 1)
		w.top = 2
		w.want(broker.DeadLettered, deadLetter(w.one("m0", "m1")))
		dead := s.dead(workQueue)
		s.resubmit(dead[1].SequenceNumber, dead[0].SequenceNumber)
		w.top = 3
		w.want(broker.Released, release(w.one("m0", "m1", "m2"))) // goes back in order
		s.snapshot(workQueue)
		u := w.one("m0", "m1", "m2")
		if dies { // a dead host's unit goes back in order too
			s.expire()
		} else {
			w.fail(u)
			w.close()
		}
		v := s.open(workQueue, 1)
		v.top = 4
		s.equal("order", v.drain(), "[m0 m1 m2 m3]")
		s.released()
	}
}

func diesAgain(s *stage) {
	s.parked("m0", "m1")
	s.resubmit(1)
	w := s.open(workQueue, 1)
	w.want(broker.DeadLettered, deadLetter(w.one("m0")))
	w.none()
	d := s.dead(workQueue)
	s.equal("parks again", []any{len(d), d[0].SequenceNumber, d[0].Dead.Parks}, []any{1, 3, true})
	s.resubmit(3)
	s.equal("order", w.drain(), "[m0 m1]")
	s.released()
}

func receivedDead(s *stage) {
	s.parked("m0", "m1")
	path := broker.FormatDeadLetterPath(workQueue)
	d, err := s.h.Broker.Receive(s.ctx, path, broker.ReceiveOptions{Max: 1, Top: 1})
	if err != nil || len(d) != 1 {
		s.t.Fatalf("receive the dead letter: %v, %v", d, err)
	}
	_, err = s.h.Broker.Resubmit(s.ctx, workQueue, 1)
	s.wantErr("resubmit what is in a receiver's hands", err, broker.ErrGroupLocked)
	s.equal("still parked", s.drainAll(workQueue), "[]")
	if _, err := s.h.Broker.Settle(s.ctx, path, d[0].Token, broker.Settlement{Verdict: broker.VerdictCommit}); err != nil {
		s.t.Fatal(err)
	}
	s.equal("goes on", s.drainAll(workQueue), "[m1]")
	s.released()
}

// endOfParked has two conversations in one group, of which one has a dead letter: the other waits with it.
func endOfParked(s *stage) {
	s.alter(homeQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "park" })
	a, _ := s.sharedGroup()
	w := s.open(homeQueue, 1)
	w.want(broker.DeadLettered, deadLetter(w.one("a0")))
	w.none()
	s.snapshot(homeQueue)
	s.end(a, 0)
	s.equal("the other goes on", w.drain(), "[b0 b1]")
	_, err := s.h.Broker.Resubmit(s.ctx, homeQueue, 1)
	s.wantErr("resubmit", err, broker.ErrResubmitEnded)
	s.equal("parked", s.queue(homeQueue).Parked, 0)
	s.snapshot(homeQueue)
	s.audit()
}

func timersWait(s *stage) {
	s.parking()
	c, h := s.timerScene()
	s.say(c, "m0", "m1")
	w := s.open(workQueue, 1)
	w.want(broker.DeadLettered, deadLetter(w.one("m0")))
	s.advance(2 * time.Second) // the timer fires
	s.end(c, 12)               // an Error arrives
	w.none()
	s.snapshot(workQueue)
	s.resubmit(s.dead(workQueue)[0].SequenceNumber)
	s.equal("order", w.drain(), "[Timer Error m0 m1]")
	s.end(h, 0)
	s.released()
}

func movedWhileParked(s *stage) {
	s.alter(homeQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "park" })
	a, b := s.sharedGroup()
	w := s.open(homeQueue, 1)
	w.want(broker.DeadLettered, deadLetter(w.one("a0")))
	const fresh = "00000000-0000-4000-8000-0000000000aa"
	s.wantErr("move", s.h.Broker.Move(s.ctx, a, fresh, 0), broker.ErrParked)
	if err := s.h.Broker.Move(s.ctx, b, fresh, 0); err != nil { // it has no dead letter: so it need not wait
		s.t.Fatal(err)
	}
	s.snapshot(homeQueue)
	s.equal("goes on", w.drain(), "[b0 b1]")
	if err := s.h.Broker.Move(s.ctx, b, s.endpoint(a).Group, 0); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.h.Broker.Resubmit(s.ctx, homeQueue, s.dead(homeQueue)[0].SequenceNumber); err != nil {
		s.t.Fatal(err)
	}
	s.equal("the rest", w.drain(), "[a0 a1]")
	s.audit()
}

func diesAtLimit(s *stage) {
	s.parking()
	s.alter(workQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 1 })
	s.sendSession(workQueue, "a", "m0", "m1")
	s.open(workQueue, 1).one("m0")
	s.expire()
	s.equal("behind it", s.drainAll(workQueue), "[]")
	s.resubmit(1)
	s.equal("order", s.drainAll(workQueue), "[m0 m1]")
	s.released()
}

// noPauseBeside: what waits behind a dead letter rests as long as that parks it, and no longer.
func noPauseBeside(s *stage) {
	s.parking()
	s.alter(workQueue, func(q *broker.QueueSettings) {
		q.MaxDelivery = 2
		q.Retry = broker.Retry{Initial: 2 * time.Second, Max: 2 * time.Second, Multiplier: 1}
	})
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 1)
	w.fail(w.one("m0"))
	s.advance(2 * time.Second)
	w.top = 2
	w.want(broker.DeadLettered, failure(w.one("m0"))) // it failed before, so it comes alone
	w.none()
	s.equal("pauses", len(s.snapshot(workQueue).Retry), 0)
	s.resubmit(1)
	w.commit(w.one("m0", "m1"))
	s.released()
}

func expiredParksNobody(s *stage) {
	s.parking()
	s.alter(workQueue, func(q *broker.QueueSettings) { q.DeadLetterTTL = true })
	m := message("old")
	m.SessionID, m.TTL = "a", time.Second
	if _, err := s.h.Broker.Send(s.ctx, workQueue, m); err != nil {
		s.t.Fatal(err)
	}
	s.sendSession(workQueue, "a", "m1")
	s.advance(2 * time.Second)
	s.equal("goes on", s.drainAll(workQueue), "[m1]")
	s.equal("dead letters", len(s.dead(workQueue)), 1)
	s.released()
}
