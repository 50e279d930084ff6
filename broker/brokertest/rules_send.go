package brokertest

import (
	"strings"
	"sync"

	"parley/broker"
)

// sendRules are the rules about SEND and END CONVERSATION.
var sendRules = []test{
	{"TestT_SN_1_numbers_of_refused_sends", refusedSends},
	{"TestT_SN_2_one_bad_send_delivers_none", func(s *stage) {
		s.say(s.begin(), "ended")
		bad := s.target("ended")
		good := s.begin()
		s.say(good, "good")
		target := s.target("good")
		s.end(bad, 0)
		s.send(workQueue, "p")
		w := s.open(workQueue, 2)
		for _, u := range w.receive().Units {
			if name(u.Messages[0]) != "p" {
				w.commit(u)
				continue
			}
			r := w.settle(commit(u, broker.Effect{Kind: broker.EffectSend, Conversation: target, Message: message("one")},
				broker.Effect{Kind: broker.EffectSend, Conversation: bad, Message: message("two")}))
			s.equal("consequence", r.Consequence, broker.Refused)
			s.wantErr("send on an ended conversation", r.Err, broker.ErrUnknownConversation)
		}
		s.equal("home", s.drainAll(homeQueue), "[EndDialog]")
	}},
	{"TestT_SN_3_an_omitted_body_is_empty", func(s *stage) {
		c := s.begin()
		if _, err := s.h.Broker.SendOn(s.ctx, c, broker.Outgoing{}); err != nil {
			s.t.Fatal(err)
		}
		u := s.open(workQueue, 1).receive().Units
		s.equal("units", len(u), 1)
		s.equal("type and body", []any{u[0].Messages[0].Type, len(u[0].Messages[0].Body)}, []any{broker.TypeDefault, 0})
	}},
	{"TestT_SN_4_a_send_of_a_failed_unit_leaves_no_gap", noGap},
	{"TestT_SN_7_sequence_numbers_start_at_0", func(s *stage) {
		c := s.begin()
		s.say(c, "m0", "m1")
		s.say(s.target("m0"), "r0")
		for queue, want := range map[string]string{workQueue: "[0 1]", homeQueue: "[0]"} {
			var seqs []int64
			for _, m := range s.snapshot(queue).Messages {
				seqs = append(seqs, m.MessageSeq)
			}
			s.equal("sequence on "+queue, seqs, want)
		}
	}},
	{"TestT_EC_1_plain_END_comes_last", func(s *stage) {
		c := s.begin()
		s.say(c, "m0", "m1")
		s.end(c, 0)
		s.equal("order", s.drainAll(workQueue), "[m0 m1 EndDialog]")
	}},
	{"TestT_EC_2_END_WITH_ERROR_drops_what_was_not_sent_yet", errorDrops},
	{"TestT_EC_3_END_after_END_sends_nothing", endAfterEnd},
	{"TestT_EC_4_END_deletes_unread_messages", func(s *stage) {
		c := s.begin()
		s.say(c, "m0", "m1")
		s.end(s.target("m0"), 0)
		s.equal("received", s.drainAll(workQueue), "[]")
	}},
	{"TestT_EC_5_bad_error_codes", badCodes},
	{"TestT_EC_6_CLEANUP_tells_nobody", func(s *stage) {
		c := s.begin()
		s.say(c, "m0")
		h := s.target("m0")
		if err := s.h.Broker.End(s.ctx, h, broker.Ending{Cleanup: true}, 0); err != nil {
			s.t.Fatal(err)
		}
		s.equal("far side", s.endpoint(c).State, broker.StateConversing)
		s.equal("far queue", s.drainAll(homeQueue), "[]")
		_, err := s.h.Broker.Endpoint(s.ctx, h)
		s.wantErr("cleaned endpoint", err, broker.ErrUnknownConversation)
	}},
	{"TestT_EC_7_END_twice", func(s *stage) {
		c := s.begin()
		s.say(c, "m0")
		s.end(c, 0)
		err := s.h.Broker.End(s.ctx, c, broker.Ending{}, 0)
		s.wantErr("END twice", err, broker.ErrConversationState)
		_, err = s.h.Broker.SendOn(s.ctx, c, message("late"))
		s.wantErr("send after END", err, broker.ErrUnknownConversation)
	}},
	{"TestT_EC_8_END_in_a_failed_unit_never_happened", endRolledBack},
	{"TestT_EC_9_the_ending_side_hears_nothing", func(s *stage) {
		c := s.begin()
		s.say(c, "m0")
		s.end(s.target("m0"), 12)
		s.equal("own queue", s.drainAll(workQueue), "[]")
		s.equal("far queue", s.drainAll(homeQueue), "[Error]")
	}},
	{"TestT_ST_the_states_of_both_sides", states},
	{"TestTrap1_a_batch_sees_the_conversation_it_creates", batchCreates},
	{"TestTrap1_concurrent_sends_on_one_dialog", concurrentSends},
}

func refusedSends(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	target := s.target("m0")
	_, err := s.h.Broker.SendOn(s.ctx, "", message("x"))
	s.wantErr("send without a handle", err, broker.ErrHandleMissing)
	_, err = s.h.Broker.SendOn(s.ctx, target[:len(target)-1]+flip(target[len(target)-1]), message("x"))
	s.wantErr("send on an unknown handle", err, broker.ErrUnknownConversation)
	s.end(c, 0)
	_, err = s.h.Broker.SendOn(s.ctx, target, message("x"))
	s.wantErr("send in DI", err, broker.ErrConversationEnded)

	d := s.begin()
	s.say(d, "n0")
	s.end(s.target("n0"), 12)
	_, err = s.h.Broker.SendOn(s.ctx, d, message("x"))
	s.wantErr("send in ER, before the Error was received", err, broker.ErrConversationEnded)
	_, err = s.h.Broker.Send(s.ctx, "nowhere", message("x"))
	s.wantErr("send to an unknown queue", err, broker.ErrUnknownEntity)
	_, err = s.h.Broker.Send(s.ctx, plainQueue+"/$DeadLetterQueue", message("x"))
	s.wantErr("send to a dead-letter queue", err, broker.ErrDeadLetterSend)
}

func noGap(s *stage) {
	c := s.begin()
	s.say(c, "q")
	h := s.target("q")
	w := s.open(workQueue, 1)
	reply := func(id string) broker.Effect {
		return broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message(id)}
	}
	w.commit(w.one("q"), reply("r0"))
	s.say(c, "q1")
	u := w.one("q1")
	r := w.settle(commit(u, reply("never"), broker.Effect{Kind: broker.EffectEnd, Conversation: c[:len(c)-1] + flip(c[len(c)-1])}))
	s.equal("consequence", r.Consequence, broker.Refused)
	w.commit(w.one("q1"), reply("r1"))
	v := s.open(homeQueue, 1)
	for i, id := range numbered("r", 2) {
		u := v.one(id)
		s.equal("sequence", u.Messages[0].MessageSeq, i)
		v.commit(u)
	}
	v.none()
}

func errorDrops(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	s.status(workQueue, broker.QueueOff)
	s.say(c, "m1", "m2")
	s.end(c, 12)
	s.snapshot(homeQueue)
	s.status(workQueue, broker.QueueActive)
	s.transmitAll(homeQueue)
	s.equal("received", s.drainAll(workQueue), "[Error m0]")
}

func endAfterEnd(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	h := s.target("m0")
	s.end(c, 0)
	s.equal("state", s.endpoint(h).State, broker.StateDisconnectedInbound)
	s.end(h, 0)
	s.equal("far queue", s.drainAll(homeQueue), "[]")
	s.equal("target", s.endpoint(h).State, broker.StateClosed)
	s.keep()
	_, err := s.h.Broker.Endpoint(s.ctx, c)
	s.wantErr("the closed initiator is gone at once", err, broker.ErrUnknownConversation)
	s.advance(stageLinger)
	_, err = s.h.Broker.Endpoint(s.ctx, h)
	s.wantErr("the closed target is gone after its time", err, broker.ErrUnknownConversation)
}

func badCodes(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	for _, bad := range []struct {
		e    broker.Ending
		want error
	}{
		{broker.Ending{Code: -1, Text: "x"}, broker.ErrErrorCode},
		{broker.Ending{Code: 1}, broker.ErrErrorText},
		{broker.Ending{Code: 1, Text: strings.Repeat("é", 3001)}, broker.ErrErrorTextLong},
		{broker.Ending{Text: "text without a code"}, broker.ErrErrorCode},
	} {
		s.wantErr("bad ending", s.h.Broker.End(s.ctx, c, bad.e, 0), bad.want)
	}
	s.equal("state", s.endpoint(c).State, broker.StateConversing)
	if err := s.h.Broker.End(s.ctx, c, broker.Ending{Code: 1, Text: strings.Repeat("é", 3000)}, 0); err != nil {
		s.t.Fatalf("3,000 characters: %v", err)
	}
}

func endRolledBack(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	h := u.Messages[0].Conversation
	r := w.settle(commit(u, broker.Effect{Kind: broker.EffectEnd, Conversation: h},
		broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("after END")}))
	s.equal("consequence", r.Consequence, broker.Refused)
	s.equal("state", s.endpoint(h).State, broker.StateConversing)
	s.equal("still there", w.drain(), "[m0 m1]")
	s.equal("far queue", s.drainAll(homeQueue), "[]")
}

func states(s *stage) {
	c := s.begin()
	s.equal("begun", s.endpoint(c).State, broker.StateStartedOutbound)
	s.say(c, "m0")
	h := s.target("m0")
	s.equal("sent", []broker.State{s.endpoint(c).State, s.endpoint(h).State}, "[CO CO]")
	s.end(h, 0)
	s.equal("target ended", []broker.State{s.endpoint(c).State, s.endpoint(h).State}, "[DI DO]")
	d := s.begin()
	s.say(d, "n0")
	g := s.target("n0")
	s.end(d, 12)
	s.equal("initiator ended with an error", []broker.State{s.endpoint(d).State, s.endpoint(g).State}, "[DO ER]")
	e := s.begin()
	s.end(e, 0)
	_, err := s.h.Broker.Endpoint(s.ctx, e)
	s.wantErr("ended before anything was sent", err, broker.ErrUnknownConversation)
}

func batchCreates(s *stage) {
	s.send(homeQueue, "p")
	w := s.open(homeQueue, 1)
	h, err := s.h.Broker.NewHandle(homeQueue)
	if err != nil {
		s.t.Fatal(err)
	}
	effects := []broker.Effect{{Kind: broker.EffectBegin, Conversation: h, From: homeSvc, To: workSvc}}
	for _, id := range numbered("m", 5) {
		effects = append(effects, broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message(id)})
	}
	w.commit(w.one("p"), append(effects, broker.Effect{Kind: broker.EffectEnd, Conversation: h})...)
	s.equal("arrived", s.drainAll(workQueue), "[m0 m1 m2 m3 m4 EndDialog]")
}

func concurrentSends(s *stage) {
	c := s.begin()
	const n = 64
	var wg sync.WaitGroup
	for _, id := range numbered("m", n) {
		wg.Go(func() {
			if _, err := s.h.Broker.SendOn(s.ctx, c, message(id)); err != nil {
				s.t.Errorf("send %s: %v", id, err)
			}
		})
	}
	wg.Wait()
	w := s.open(workQueue, 1)
	seen := map[string]bool{}
	for i := range n {
		rep := w.receive()
		if len(rep.Units) != 1 {
			s.t.Fatalf("%d of %d arrived", i, n)
		}
		m := rep.Units[0].Messages[0]
		s.equal("sequence", m.MessageSeq, i)
		if seen[name(m)] {
			s.t.Fatalf("%s arrived twice", name(m))
		}
		seen[name(m)] = true
		w.commit(rep.Units[0])
	}
}
