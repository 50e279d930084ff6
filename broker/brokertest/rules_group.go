package brokertest

import (
	"parley/broker"
)

// groupRules are those of conversation groups: whose they are, what they remember and for how long.
var groupRules = []test{
	{"TestDG_6_a_group_belongs_to_one_service", func(s *stage) {
		s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Other", Queue: homeQueue, Contracts: []string{broker.ContractDefault}}}})
		group := s.endpoint(s.begin()).Group
		s.equal("joined by a dialog of the same service", s.endpoint(s.beginIn(group)).Group, group)
		before := len(s.snapshot(homeQueue).Conversations)
		_, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: "//t/Other", To: workSvc, Group: group})
		s.wantErr("begin in the group of another service", err, broker.ErrGroupService)
		s.equal("conversations afterwards", len(s.snapshot(homeQueue).Conversations), before)
	}},
	{"TestDG_6_a_handler_cannot_join_the_group_of_another_service", func(s *stage) {
		s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Other", Queue: workQueue, Contracts: []string{broker.ContractDefault}}}})
		s.say(s.begin(), "m")
		w := s.open(workQueue, 1)
		u := w.one("m")
		h, err := s.h.Broker.NewHandle(workQueue)
		if err != nil {
			s.t.Fatal(err)
		}
		r := w.settle(commit(u, broker.Effect{
			Kind: broker.EffectBegin, Conversation: h, From: "//t/Other", To: homeSvc, Contract: broker.ContractDefault, Group: u.Messages[0].Group,
		}))
		s.equal("consequence", r.Consequence, broker.Refused)
		s.wantErr("its error", r.Err, broker.ErrGroupService)
	}},
	{"a_group_s_state_dies_with_its_last_conversation", func(s *stage) {
		const group = "6d0b9a2e-3f5c-4b60-9d1f-1c9b6f0a7e55"
		a, b := s.beginIn(group), s.beginIn(group)
		s.equal("state kept while a conversation is left", stateAfterEnd(s, a, b), "v")
		s.end(a, 0)
		w := s.open(workQueue, 1)
		w.commit(w.one("EndDialog"))
		c := s.beginIn(group)
		s.say(c, "again")
		u := w.one("again")
		w.commit(u, reply(u, "answer"))
		home := s.open(homeQueue, 1)
		s.equal("state of a new conversation in the same group", len(home.one("answer").State), 0)
	}},
	{"TestDG_9_MOVE_into_a_group_that_a_reader_holds", func(s *stage) {
		a, b := s.begin(), s.begin()
		s.say(a, "a0")
		s.say(b, "b0", "b1")
		to := s.endpoint(s.target("b0")).Group
		from := s.endpoint(s.target("a0")).Group
		v := s.open(workQueue, 2)
		units := v.receive().Units
		s.equal("groups held", len(units), 2)
		i := 0
		if units[i].Messages[0].MessageID != "a0" {
			i = 1
		}
		r := v.settle(commit(units[i], broker.Effect{Kind: broker.EffectMove, Conversation: s.target("a0"), Group: to}))
		s.equal("consequence", r.Consequence, broker.Refused)
		s.wantErr("move into a held group", r.Err, broker.ErrGroupLocked)
		s.wantErr("move into a held group, by an operator", s.h.Broker.Move(s.ctx, s.target("a0"), to, 0), broker.ErrGroupLocked)
		s.equal("its group", s.endpoint(s.target("a0")).Group, from)
		s.snapshot(workQueue)
	}},
}

// stateAfterEnd lets the initiator's side of a remember something, ends b, which is in the same group, and returns what the group
// remembers when a hears the next message.
func stateAfterEnd(s *stage, a, b string) string {
	s.t.Helper()
	home, w := s.open(homeQueue, 1), s.open(workQueue, 1)
	s.say(a, "q0")
	u := w.one("q0")
	w.commit(u, reply(u, "r0"))
	u = home.one("r0")
	home.commit(u, broker.Effect{Kind: broker.EffectPutState, Key: "k", Value: []byte("v")})
	s.end(b, 0)
	s.say(a, "q1")
	u = w.one("q1")
	w.commit(u, reply(u, "r1"))
	u = home.one("r1")
	home.commit(u)
	return string(u.State["k"])
}

// reply is the effect that sends a message named id on the conversation of u.
func reply(u *broker.Unit, id string) broker.Effect {
	return broker.Effect{Kind: broker.EffectSend, Conversation: u.Messages[0].Conversation, Message: message(id)}
}
