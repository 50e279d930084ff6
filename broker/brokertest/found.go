package brokertest

import (
	"time"

	"parley/broker"
)

// found has the shortest trace of each fault that the randomised test, or a reading of the scripts, ever found.
var found = []test{
	{"TestFound_a_rollback_whose_reply_is_lost_counts_once", lostRollback},
	{"TestFound_a_refused_commit_whose_reply_is_lost", lostRefusal},
	{"TestFound_a_lost_reply_keeps_the_other_tokens_of_a_receive", lostTokenReply},
	{"TestFound_a_late_close_gives_nothing_back", lateClose},
	{"TestFound_ended_groups_hide_nothing", endedGroupsHide},
	{"TestFound_an_ended_uncertain_group_hides_nothing", endedUncertainHides},
	{"TestFound_expired_messages_hide_nothing", expiredHide},
	{"TestFound_a_pause_of_0_is_at_once", pauseZero},
	{"TestFound_two_units_at_the_limit_turn_the_queue_once", twoAtTheLimit},
	{"TestFound_END_of_a_parked_conversation_keeps_the_counters", endParked},
	{"TestFound_a_timer_that_came_back_is_not_joined_by_a_second", timerCameBack},
	{"TestFound_a_pause_ends_behind_an_ended_conversation", restBehindEnded},
	{"TestFound_a_refused_unit_leaves_no_trace_in_the_next", refusedLeavesNoTrace},
}

func lostRollback(s *stage) {
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	u := w.one("m")
	s.h.LoseReply(0, 1)
	rep := w.settleTake(failure(u)) // comes back at once and is handed out again in the same step
	s.equal("handed out again", names(rep.Units), "[m]")
	s.equal("count", rep.Units[0].Messages[0].PoisonCount, 1)
	s.equal("stored", s.stored(workQueue, "m").PoisonCount, 1)
}

func lostRefusal(s *stage) {
	s.say(s.begin(), "c")
	h := s.target("c")
	s.end(h, 0)
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	u := w.one("m")
	s.h.LoseReply(0, 1)
	r := w.settle(commit(u, sendTo(sinkQueue, "out"), broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("x")}))
	if r.Consequence == broker.Committed {
		s.t.Errorf("a refused commit was reported as committed")
	}
	s.equal("sent", s.drainAll(sinkQueue), "[]")
	w.one("m")
}

func lostTokenReply(s *stage) {
	s.send(plainQueue, "m0", "m1")
	got, err := s.h.Broker.Receive(s.ctx, plainQueue, broker.ReceiveOptions{Max: 2, Top: 1})
	s.equal("received", []any{len(got), err}, "[2 <nil>]")
	s.h.LoseReply(0, 1)
	for _, d := range got {
		r, err := s.h.Broker.Settle(s.ctx, plainQueue, d.Token, commit(d.Unit))
		s.equal("settle "+name(d.Unit.Messages[0]), []any{r.Consequence, err}, []any{broker.Committed, nil})
	}
	snap := s.snapshot(plainQueue)
	s.equal("left", []int{len(snap.Messages), len(snap.Readers)}, "[0 0]")
}

func lateClose(s *stage) {
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	w.one("m")
	s.h.Advance(broker.DefaultLease + time.Second)
	_ = w.r.Close(s.ctx) // expired is lost, even before anybody reaped it: this changes nothing
	s.keep()
	s.equal("the lost lease was counted", s.stored(workQueue, "m").PoisonCount, 1)
}

// backlogs makes n conversations with one filed message each, and returns their targets.
func (s *stage) backlogs(n int) (targets []string) {
	s.t.Helper()
	ids := numbered("c", n)
	for _, id := range ids {
		s.say(s.begin(), id)
	}
	w := s.open(workQueue, n)
	for _, u := range w.receive().Units {
		targets = append(targets, u.Messages[0].Conversation)
		w.want(broker.Released, release(u))
	}
	w.close()
	s.equal("conversations", len(targets), n)
	return targets
}

func endedGroupsHide(s *stage) {
	targets := s.backlogs(8)
	for _, h := range targets[:7] {
		s.end(h, 0)
	}
	w := s.open(workQueue, 2)
	rep := w.receive()
	if len(rep.Units) != 1 || rep.Units[0].Messages[0].Conversation != targets[7] {
		s.t.Fatalf("got %v, want the one message that is left", names(rep.Units))
	}
}

func endedUncertainHides(s *stage) {
	s.say(s.begin(), "c0")
	s.say(s.begin(), "c1")
	w := s.open(workQueue, 1)
	s.equal("window", names(w.window(0, 2)), "[c0 c1]")
	s.expire() // both are uncertain now
	s.end(s.target("c0"), 0)
	s.end(s.target("c1"), 0)
	s.send(workQueue, "m")
	s.open(workQueue, 1).one("m")
}

func expiredHide(s *stage) {
	for range 3 {
		if _, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{Body: []byte("old"), TTL: time.Second}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.send(plainQueue, "m")
	w := s.open(plainQueue, 4)
	for _, u := range w.receive().Units {
		w.want(broker.Released, release(u)) // all wait as ones that came back
	}
	s.advance(2 * time.Second)
	w.close()
	s.open(plainQueue, 1).one("m")
}

func pauseZero(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.Retry.Initial, q.Retry.Max = time.Minute, time.Minute })
	s.send(plainQueue, "m")
	w := s.open(plainQueue, 1)
	w.want(broker.RolledBack, pause(w.one("m"), 0))
	w.one("m")
}

func twoAtTheLimit(s *stage) {
	s.send(workQueue, "m0", "m1")
	w := s.open(workQueue, 2)
	for range 4 {
		for _, u := range w.receive().Units {
			w.fail(u)
		}
	}
	units := w.receive().Units
	rep, err := w.turn(broker.TurnRequest{Settle: []broker.Settlement{failure(units[0]), failure(units[1])}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.equal("consequences", []broker.Consequence{rep.Results[0].Consequence, rep.Results[1].Consequence},
		[]broker.Consequence{broker.QueueTurned, broker.RolledBack})
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
}

func endParked(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	s.open(workQueue, 1).none() // files m1
	w.want(broker.RolledBack, pause(u, time.Minute))
	s.end(u.Messages[0].Conversation, 0)
	s.equal("counts", s.snapshot(workQueue).Counts, broker.Counts{})
	s.advance(2 * time.Minute)
	w = s.open(workQueue, 1)
	w.none()
	s.equal("counts", s.snapshot(workQueue).Counts, broker.Counts{})
}

// restBehindEnded parks a group whose unit had messages of two conversations, and ends the one that stands in front.
func restBehindEnded(s *stage) {
	a, b := s.sharedGroup()
	w := s.open(homeQueue, 1)
	w.top = 4
	w.want(broker.RolledBack, pause(w.one("a0", "a1", "b0", "b1"), 3*time.Second))
	s.end(a, 0)
	s.advance(4 * time.Second)
	s.snapshot(homeQueue)
	s.equal("left", w.drain(), "[b0 b1]")
	_ = b
}

func refusedLeavesNoTrace(s *stage) {
	c := s.begin()
	s.say(c, "m")
	h := s.target("m")
	s.say(s.begin(), "n")
	gone := s.target("n")
	s.end(gone, 0)
	s.equal("drained", s.drainAll(workQueue), "[m]")
	s.send(workQueue, "p0", "p1")
	w := s.open(workQueue, 2)
	units := w.receive().Units
	say := func(h, id string) broker.Effect {
		return broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message(id)}
	}
	rep, err := w.turn(broker.TurnRequest{Settle: []broker.Settlement{
		commit(units[0], broker.Effect{Kind: broker.EffectEnd, Conversation: h}, say(gone, "never")),
		commit(units[1], say(h, "r")),
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.equal("consequences", []broker.Consequence{rep.Results[0].Consequence, rep.Results[1].Consequence},
		[]broker.Consequence{broker.Refused, broker.Committed})
	s.equal("state", s.endpoint(h).State, broker.StateConversing)
	s.equal("counts of the other unit", s.snapshot(workQueue).Attempts, 1)
}

func timerCameBack(s *stage) {
	s.send(workQueue, "p")
	v := s.open(workQueue, 1)
	p := v.one("p")
	c, h := s.timerScene()
	s.h.Advance(2 * time.Second)
	s.keep()
	w := s.open(workQueue, 1)
	w.fail(w.one("Timer"))
	v.commit(p, arm(h, time.Second))
	s.say(c, "m")
	s.advance(2 * time.Second)
	s.equal("two that nobody has received are one (SM-11)", w.drain(), "[Timer m]")
}
