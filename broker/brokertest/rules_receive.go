package brokertest

import (
	"context"
	"fmt"
	"time"

	"parley/broker"
)

// receiveRules are the rules of the specification about order, groups and RECEIVE.
var receiveRules = []test{
	{"TestT_OR_1_one_dialog_in_order", func(s *stage) {
		s.say(s.begin(), numbered("m", 10)...)
		s.equal("order", s.drainAll(workQueue), numbered("m", 10))
	}},
	{"TestT_OR_2_four_readers_in_order", fourReaders},
	{"TestT_OR_3_timer_error_rest", timerErrorRest},
	{"TestT_OR_4_EndDialog_keeps_its_place", endKeepsPlace},
	{"TestT_OR_5_TOP_1_returns_the_timer_alone", timerAlone},
	{"TestT_OR_6_a_timer_overtakes_its_own_conversation_only", timerOvertakesOwn},
	{"TestT_OR_8_a_repeated_send_is_stored_once", func(s *stage) {
		c := s.begin()
		s.h.LoseReply(0, 1)
		_, err := s.h.Broker.SendOn(s.ctx, c, message("m0"))
		s.equal("stored, whatever the caller was told", s.drainAll(workQueue), "[m0]")
		s.h.LoseCall(0, 1)
		_, lost := s.h.Broker.SendOn(s.ctx, c, message("m1"))
		want := "[m1]" // when the client repeats by itself; else it must say that it does not know
		if lost != nil {
			want = "[]"
		}
		s.equal(fmt.Sprintf("stored after %v and %v", err, lost), s.drainAll(workQueue), want)
	}},
	{"TestT_GR_1_one_reader_a_group", twoInOneGroup},
	{"TestT_GR_2_arrivals_to_a_locked_group", func(s *stage) {
		c := s.begin()
		s.say(c, "m0")
		w := s.open(workQueue, 1)
		u := w.one("m0")
		s.say(c, "m1")
		s.open(workQueue, 1).none()
		w.commit(u)
		s.equal("later", s.drainAll(workQueue), "[m1]")
	}},
	{"TestT_GR_3_conversations_of_a_group_are_not_mixed", notMixed},
	{"TestT_GR_4_an_unknown_group_is_created_with_its_id", func(s *stage) {
		const g = "6d0b9a2e-3f5c-4b60-9d1f-1c9b6f0a7e55"
		s.equal("group", s.endpoint(s.beginIn(g)).Group, g)
		s.equal("group joined", s.endpoint(s.beginIn(g)).Group, g)
	}},
	{"TestT_GR_5_the_targets_group_is_its_own", func(s *stage) {
		c := s.begin()
		s.say(c, "m")
		a, b := s.endpoint(c), s.endpoint(s.target("m"))
		if a.Group == b.Group || a.ConversationID != b.ConversationID || a.Handle == b.Handle {
			s.t.Fatalf("the two sides are %+v and %+v", a, b)
		}
	}},
	{"TestT_GR_6_a_lock_is_one_sided", oneSidedLock},
	{"TestT_RC_1_unknown_and_empty", unknownAndEmpty},
	{"TestT_RC_2_waiting_for_a_first_message", waitFirst},
	{"TestT_RC_3_queue_off_ends_a_wait", offEndsWait},
	{"TestT_RC_4_rollback_restores", rollbackRestores},
	{"TestT_RC_5_TOP_never_spans_two_groups", topOneGroup},
	{"TestT_RC_6_receive_one_conversation_of_a_group", pickConversation},
}

func fourReaders(s *stage) {
	s.say(s.begin(), numbered("m", 10)...)
	var got []string
	s.crowd(workQueue, 4, func(w *worker, u *broker.Unit, _ int) {
		w.commit(u)
		got = append(got, unitNames(u)...)
	})
	s.equal("order", got, numbered("m", 10))
}

// timerScene arms the target's timer for one second by committing first message "m".
func (s *stage) timerScene() (initiator, target string) {
	s.t.Helper()
	c := s.begin()
	s.say(c, "m")
	w := s.open(workQueue, 1)
	u := w.one("m")
	w.commit(u, arm(u.Messages[0].Conversation, time.Second))
	w.close()
	return c, u.Messages[0].Conversation
}

func timerErrorRest(s *stage) {
	c, _ := s.timerScene()
	s.say(c, "m0", "m1")
	s.end(c, 12)
	s.advance(2 * time.Second)
	s.equal("order", s.drainAll(workQueue), "[Timer Error m0 m1]")
}

func endKeepsPlace(s *stage) {
	c, _ := s.timerScene()
	s.say(c, "m0")
	s.end(c, 0)
	s.advance(2 * time.Second)
	s.equal("order", s.drainAll(workQueue), "[Timer m0 EndDialog]")
}

func timerAlone(s *stage) {
	c, _ := s.timerScene()
	s.end(c, 12)
	s.advance(2 * time.Second)
	s.open(workQueue, 1).one("Timer")
}

func timerOvertakesOwn(s *stage) {
	s.timerScene()
	s.say(s.begin(), "b0")
	w := s.open(workQueue, 1)
	w.want(broker.Released, release(w.one("b0"))) // it waits on equal terms: seen by a reader, as timers are at arrival
	s.advance(2 * time.Second)
	s.equal("order of conversations", w.drain(), "[b0 Timer]")
}

// sharedGroup begins two dialogs whose initiators are in one group and lets the target answer on both: home has r0, r1 of
// each, interleaved.
func (s *stage) sharedGroup() (a, b string) {
	s.t.Helper()
	a = s.begin()
	b = s.beginIn(s.endpoint(a).Group)
	for i, c := range []string{a, b} {
		id := numbered("q", 2)[i]
		s.say(c, id)
	}
	ta, tb := s.target("q0"), s.target("q1")
	s.say(ta, "a0")
	s.say(tb, "b0")
	s.say(ta, "a1")
	s.say(tb, "b1")
	return a, b
}

func twoInOneGroup(s *stage) {
	s.sharedGroup()
	w, v := s.open(homeQueue, 1), s.open(homeQueue, 1)
	u := w.one("a0")
	v.none()
	s.send(homeQueue, "other")
	v.one("other")
	w.commit(u)
}

func notMixed(s *stage) {
	s.sharedGroup()
	w := s.open(homeQueue, 1)
	w.fileAll()
	w.top = 100
	w.one("a0", "a1", "b0", "b1")
}

// fileAll has everything that waits on home filed, by holding its group once.
func (w *worker) fileAll() {
	w.s.t.Helper()
	u := w.one("a0")
	v := w.s.open(homeQueue, 1)
	v.none()
	v.close()
	w.want(broker.Released, release(u))
}

func oneSidedLock(s *stage) {
	c := s.begin()
	s.say(c, "q")
	s.say(s.target("q"), "r")
	w := s.open(homeQueue, 1)
	u := w.one("r")
	v := s.open(workQueue, 1)
	v.commit(v.one("q"))
	w.commit(u)
}

func unknownAndEmpty(s *stage) {
	c := s.begin()
	s.say(c, "m")
	h := s.target("m")
	s.equal("drained", s.drainAll(workQueue), "[m]")
	got, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Conversation: h})
	s.equal("known and empty", []any{len(got), err}, "[0 <nil>]")
	other := s.begin() // lives on another queue
	for _, bad := range []string{other, h[:len(h)-1] + flip(h[len(h)-1]), "nonsense"} {
		_, err = s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Conversation: bad})
		s.wantErr("receive on "+bad, err, broker.ErrUnknownConversation)
	}
	_, err = s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Group: "6d0b9a2e-3f5c-4b60-9d1f-1c9b6f0a7e55"})
	s.wantErr("receive of an unknown group", err, broker.ErrUnknownGroup)
	_, err = s.h.Broker.Receive(s.ctx, "nowhere", broker.ReceiveOptions{Max: 1, Top: 1})
	s.wantErr("receive from an unknown queue", err, broker.ErrUnknownEntity)
}

// flip is another hexadecimal digit than c.
func flip(c byte) string {
	if c == '0' {
		return "1"
	}
	return "0"
}

func waitFirst(s *stage) {
	began := time.Now()
	got, err := s.h.Broker.Receive(s.ctx, plainQueue, broker.ReceiveOptions{Max: 1, Top: 1, Wait: 500 * time.Millisecond})
	took := time.Since(began)
	s.equal("empty", []any{len(got), err}, "[0 <nil>]")
	if took < 500*time.Millisecond || took > 5*time.Second {
		s.t.Fatalf("waited %v, want about 500 ms", took)
	}
	type answer struct {
		got []broker.Delivery
		err error
	}
	done := make(chan answer, 1)
	go func() {
		got, err := s.h.Peer.Receive(s.ctx, plainQueue, broker.ReceiveOptions{Max: 1, Top: 1, Wait: 30 * time.Second})
		done <- answer{got, err}
	}()
	s.until("a waiting receiver sleeps", func() bool { return s.snapshot(plainQueue).Asleep })
	s.send(plainQueue, "m")
	select {
	case a := <-done:
		s.equal("woken", []any{len(a.got), a.err}, "[1 <nil>]")
	case <-time.After(10 * time.Second):
		s.t.Fatalf("the waiting receiver was not woken")
	}
}

func offEndsWait(s *stage) {
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() {
		_, err := s.h.Peer.Receive(ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Wait: 30 * time.Second})
		done <- err
	}()
	s.until("a waiting receiver sleeps", func() bool { return s.snapshot(workQueue).Asleep })
	s.status(workQueue, broker.QueueOff)
	select {
	case err := <-done:
		s.wantErr("wait on a queue that is turned off", err, broker.ErrQueueDisabled)
	case <-time.After(5 * time.Second):
		s.t.Fatalf("the waiting receiver did not hear that the queue is off")
	}
	_, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1})
	s.wantErr("receive from a queue that is off", err, broker.ErrQueueDisabled)
}

func rollbackRestores(s *stage) {
	c := s.begin()
	s.say(c, numbered("m", 3)...)
	w := s.open(workQueue, 1)
	w.top = 10
	u := w.one("m0", "m1", "m2")
	w.fail(u)
	for i := range u.Messages { // each comes back alone, in its order
		v := w.one(u.Messages[i].MessageID)
		a, b := u.Messages[i], v.Messages[0]
		s.equal("again", []any{b.SequenceNumber, b.MessageSeq, b.Conversation, b.EnqueuedAt, b.Group},
			[]any{a.SequenceNumber, a.MessageSeq, a.Conversation, a.EnqueuedAt, a.Group})
		w.commit(v)
	}
}

func topOneGroup(s *stage) {
	a, b := s.begin(), s.begin()
	for i := range 3 {
		s.say(a, numbered("a", 3)[i])
		s.say(b, numbered("b", 3)[i])
	}
	w := s.open(workQueue, 1)
	w.top = 100
	first := w.one("a0", "a1", "a2")
	w.commit(first)
	got, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 100})
	s.equal("the other group", []any{deliveryNames(got), err}, "[[b0 b1 b2] <nil>]")
}

func pickConversation(s *stage) {
	a, b := s.sharedGroup()
	got, err := s.h.Broker.Receive(s.ctx, homeQueue, broker.ReceiveOptions{Max: 1, Top: 10, Conversation: b})
	s.equal("only that conversation", []any{deliveryNames(got), err}, "[[b0 b1] <nil>]")
	other, err := s.h.Broker.Receive(s.ctx, homeQueue, broker.ReceiveOptions{Max: 1, Top: 10, Conversation: a})
	s.equal("its group is held", []any{len(other), err}, "[0 <nil>]")
	for _, d := range got {
		if _, err := s.h.Broker.Settle(s.ctx, homeQueue, d.Token, commit(d.Unit)); err != nil {
			s.t.Fatalf("settle: %v", err)
		}
	}
	s.equal("the rest", s.drainAll(homeQueue), "[a0 a1]")
}
