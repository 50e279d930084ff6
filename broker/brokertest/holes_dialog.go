package brokertest

import (
	"time"

	"parley/broker"
)

// dialogHoles are the holes that only conversations have.
var dialogHoles = []test{
	{"TestH4_a_timer_is_not_overtaken_at_handover", holeTimerHandOver},
	{"TestH4_a_timer_is_not_overtaken_in_the_backlog", holeTimerBacklog},
	{"TestH4_an_error_is_not_overtaken", holeErrorHandOver},
	{"TestH4_many_system_messages_overtake_nothing", holeManyTimers},
	{"TestH8_unread_messages_move_with_their_conversation", holeMove},
	{"TestH8_backlogs_move_with_their_conversation", holeMoveBacklog},
	{"TestH8_a_held_group_is_not_moved", holeMoveHeld},
	{"TestH9_unread_messages_of_an_ended_conversation", holeEndUnread},
	{"TestH9_the_backlog_of_an_ended_conversation", holeEndBacklog},
	{"TestH9_a_held_conversation_is_not_ended_from_outside", holeEndHeld},
}

// target returns the handle that the target side of the dialog of the initiator's handle has, which must have a message
// stored in workQueue with that id.
func (s *stage) target(id string) string {
	s.t.Helper()
	m := s.stored(workQueue, id)
	if m == nil || m.Conversation == "" {
		s.t.Fatalf("%s is not stored as a message of a conversation: %+v", id, m)
	}
	return m.Conversation
}

// arm is the effect that arms the timer of handle.
func arm(handle string, after time.Duration) broker.Effect {
	return broker.Effect{Kind: broker.EffectTimer, Conversation: handle, After: after}
}

func holeTimerHandOver(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	w.commit(u, arm(u.Messages[0].Conversation, time.Second))
	s.say(c, "m1", "m2")
	u = w.one("m1")
	s.advance(1001 * time.Millisecond)
	rep := w.settleTake(commit(u))
	s.equal("handed over", names(rep.Units), "[Timer]")
	rep = w.settleTake(commit(rep.Units[0]))
	s.equal("handed over", names(rep.Units), "[m2]")
}

func holeTimerBacklog(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	w.commit(u, arm(u.Messages[0].Conversation, 2*time.Second))
	s.say(c, "m1")
	w.want(broker.RolledBack, pause(w.one("m1"), 3*time.Second))
	s.say(c, "m2")
	s.advance(2500 * time.Millisecond)
	w.none() // the timer waits with its parked group
	s.advance(600 * time.Millisecond)
	s.equal("order", w.drain(), "[Timer m1 m2]")
}

func holeErrorHandOver(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	s.end(c, 12)
	rep := w.settleTake(commit(u))
	s.equal("handed over", names(rep.Units), "[Error]")
	w.commit(rep.Units[0])
	s.equal("the rest", w.drain(), "[m1]")
}

func holeManyTimers(s *stage) {
	const n = 6
	s.send(workQueue, "p")
	w := s.open(workQueue, 1)
	p := w.one("p")
	var arms []broker.Effect
	for _, id := range numbered("m", n) {
		s.say(s.begin(), id)
		arms = append(arms, arm(s.target(id), time.Second))
	}
	w.commit(p, arms...)
	s.advance(1500 * time.Millisecond)
	first := map[string]string{}
	for range 2 * n {
		u := w.receive().Units[0]
		if m := u.Messages[0]; first[m.Conversation] == "" {
			first[m.Conversation] = name(m)
		}
		w.commit(u)
	}
	s.equal("conversations", len(first), n)
	for c, got := range first {
		s.equal("first of "+c, got, "Timer")
	}
}

func holeMove(s *stage) {
	s.send(workQueue, "p")
	w := s.open(workQueue, 1)
	p := w.one("p")
	a, b := s.begin(), s.begin()
	s.say(a, "a0")
	s.say(b, "b0")
	to := s.endpoint(s.target("b0")).Group
	w.commit(p, broker.Effect{Kind: broker.EffectMove, Conversation: s.target("a0"), Group: to})
	s.snapshot(workQueue)
	s.equal("group of the moved one", s.endpoint(s.target("a0")).Group, to)
	v := s.open(workQueue, 2)
	rep := v.receive()
	s.equal("units of one group at once", len(rep.Units), 1)
	s.equal("its group", rep.Units[0].Group, "g:"+to)
	v.commit(rep.Units[0])
	rep = v.receive()
	s.equal("its group", rep.Units[0].Group, "g:"+to)
}

func holeMoveBacklog(s *stage) {
	s.send(workQueue, "p")
	w := s.open(workQueue, 1)
	p := w.one("p")
	a, b := s.begin(), s.begin()
	s.say(a, "a0", "a1")
	v := s.open(workQueue, 2)
	ua := v.one("a0")
	s.say(a, "a2")
	v.none() // files a1 and a2
	s.say(b, "b0", "b1")
	v.want(broker.RolledBack, pause(ua, time.Minute)) // a is parked whole
	ub := v.one("b0")
	v.want(broker.Released, release(ub))
	w.commit(p, broker.Effect{Kind: broker.EffectMove, Conversation: s.target("a0"), Group: s.endpoint(s.target("b0")).Group})
	var got []string
	for _, id := range v.drain() {
		if id[0] == 'a' {
			got = append(got, id)
		}
	}
	s.equal("nothing is parked any more, the order is kept", got, "[a0 a1 a2]")
	snap := s.snapshot(workQueue)
	s.equal("locks, ready, retry, messages", []int{len(snap.Locks), len(snap.Ready), len(snap.Retry), len(snap.Messages)}, "[0 0 0 0]")
}

func holeMoveHeld(s *stage) {
	s.send(workQueue, "p")
	w := s.open(workQueue, 1)
	p := w.one("p")
	a, b := s.begin(), s.begin()
	s.say(a, "a0")
	v := s.open(workQueue, 1)
	u := v.one("a0")
	s.say(b, "b0")
	r := w.settle(commit(p, broker.Effect{
		Kind: broker.EffectMove, Conversation: s.target("a0"), Group: s.endpoint(s.target("b0")).Group,
	}))
	s.equal("consequence", r.Consequence, broker.Refused)
	s.wantErr("move of a held group", r.Err, broker.ErrGroupLocked)
	s.equal("rolled back uncounted", s.stored(workQueue, "p").DeliveryCount, 0)
	v.commit(u)
}

func holeEndUnread(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1")
	s.end(s.target("m0"), 0)
	s.equal("ready", s.queue(workQueue).Counts.Ready, 0)
	w := s.open(workQueue, 1)
	w.none()
	s.equal("left", len(s.snapshot(workQueue).Messages), 0)
	s.equal("the ending side hears nothing itself, the other one does", names(s.open(homeQueue, 1).receive().Units), "[EndDialog]")
}

func holeEndBacklog(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1", "m2")
	w := s.open(workQueue, 2)
	u := w.one("m0")
	w.none() // files m1 and m2
	handle := u.Messages[0].Conversation
	w.fail(u)
	s.end(handle, 0)
	s.equal("ready", s.queue(workQueue).Counts.Ready, 0)
	w.none()
	snap := s.snapshot(workQueue)
	s.equal("messages, locks, ready", []int{len(snap.Messages), len(snap.Locks), len(snap.Ready)}, "[0 0 0]")
}

func holeEndHeld(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	err := s.h.Broker.End(s.ctx, u.Messages[0].Conversation, broker.Ending{}, 0)
	s.wantErr("END of a held conversation", err, broker.ErrGroupLocked)
	w.commit(u)
	s.end(u.Messages[0].Conversation, 0)
}
