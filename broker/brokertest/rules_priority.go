package brokertest

import (
	"fmt"
	"time"

	"parley/broker"
)

// priorityRules are the rules about priorities (PR).
var priorityRules = []test{
	{"TestT_PR_1_all_eight_match_levels", eightLevels},
	{"TestT_PR_2_a_new_rule_does_not_touch_live_dialogs", func(s *stage) {
		s.priorities(broker.PriorityRule{Local: workSvc, Level: 3})
		c := s.begin()
		s.say(c, "m0")
		h := s.target("m0")
		s.priorities(broker.PriorityRule{Local: workSvc, Level: 9})
		d := s.begin()
		s.say(d, "n0")
		s.say(c, "m1")
		s.equal("levels", []int{s.endpoint(h).Priority, s.endpoint(s.target("n0")).Priority}, "[3 9]")
		s.equal("order", s.drainAll(workQueue), "[n0 m0 m1]")
	}},
	{"TestT_PR_3_a_group_counts_as_its_best_waiting_conversation", bestWaiting},
	{"TestPR_1_a_level_out_of_range_is_refused", func(s *stage) {
		for _, level := range []int{0, 11, -1} {
			_, err := s.h.Broker.Apply(s.ctx, broker.Definitions{Priorities: []broker.PriorityRule{{Name: "bad", Level: level}}}, false)
			s.wantErr("level", err, broker.ErrInvalid)
		}
	}},
	{"TestPR_2_the_two_sides_are_rated_by_themselves", func(s *stage) {
		s.priorities(broker.PriorityRule{Local: workSvc, Level: 2}, broker.PriorityRule{Local: homeSvc, Level: 8})
		c := s.begin()
		s.say(c, "m")
		s.equal("levels", []int{s.endpoint(c).Priority, s.endpoint(s.target("m")).Priority}, "[8 2]")
	}},
	{"TestPR_5_order_inside_a_conversation_stays", func(s *stage) {
		s.priorities(broker.PriorityRule{Local: workSvc, Level: 9})
		c := s.begin()
		s.say(c, numbered("m", 4)...)
		s.send(workQueue, "p")
		s.equal("order", s.drainAll(workQueue), "[m0 m1 m2 m3 p]")
	}},
	{"TestRC_2_best_first_wherever_it_waits", bestWherever},
	{"TestRC_3_TOP_cuts_after_the_order", topCutsAfterOrder},
	{"TestRC_10_ageing_lets_low_priorities_in", ageing},
}

// priorities replaces all rules.
func (s *stage) priorities(rules ...broker.PriorityRule) {
	s.t.Helper()
	for i := range rules {
		rules[i].Name = fmt.Sprint("rule", i)
	}
	s.apply(broker.Definitions{Priorities: rules})
}

func eightLevels(s *stage) {
	s.contract()
	rules := []broker.PriorityRule{
		{Contract: askContract, Local: askSvc, Remote: homeSvc, Level: 10},
		{Contract: askContract, Local: askSvc, Level: 9},
		{Contract: askContract, Remote: homeSvc, Level: 8},
		{Contract: askContract, Level: 7},
		{Local: askSvc, Remote: homeSvc, Level: 6},
		{Local: askSvc, Level: 4},
		{Remote: homeSvc, Level: 3},
		{Level: 2},
		{Contract: "//t/None", Local: homeSvc, Remote: askSvc, Level: 1}, // matches nothing
	}
	for i, want := range []int{10, 9, 8, 7, 6, 4, 3, 2, 5} {
		var left []broker.PriorityRule // in an order that must not matter
		for k := len(rules) - 1; k >= i; k-- {
			left = append(left, rules[k])
		}
		s.priorities(left...)
		c := s.beginWith(askSvc, askContract)
		s.sayTyped(c, noteType, "m")
		u := s.open(workQueue, 1).one("m")
		s.equal(fmt.Sprintf("level without the best %d rules", i), u.Messages[0].Priority, want)
		s.end(c, 0)
		s.expire()
		s.drainAll(workQueue)
	}
}

// twoLevels begins two dialogs whose initiators share a group: a has level 9 and b has level 2 on homeQueue. other is a dialog
// of its own, of level 5. All targets can answer.
func (s *stage) twoLevels() (a, b, other string) {
	s.t.Helper()
	s.contract()
	s.priorities(broker.PriorityRule{Contract: askContract, Local: homeSvc, Level: 9},
		broker.PriorityRule{Contract: broker.ContractDefault, Local: homeSvc, Remote: workSvc, Level: 2})
	s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Other", Queue: workQueue, Contracts: []string{broker.ContractDefault}}}})
	ia := s.beginWith(askSvc, askContract)
	e, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: workSvc, Group: s.endpoint(ia).Group})
	if err != nil {
		s.t.Fatal(err)
	}
	io := s.beginWith("//t/Other", "")
	s.sayTyped(ia, noteType, "qa")
	s.say(e.Handle, "qb")
	s.say(io, "qo")
	w := s.open(workQueue, 3)
	handles := map[string]string{}
	for _, u := range w.receive().Units {
		handles[name(u.Messages[0])] = u.Messages[0].Conversation
		w.commit(u)
	}
	w.close()
	s.equal("levels", []int{s.endpoint(ia).Priority, s.endpoint(e.Handle).Priority, s.endpoint(io).Priority}, "[9 2 5]")
	return handles["qa"], handles["qb"], handles["qo"]
}

func bestWaiting(s *stage) {
	a, b, other := s.twoLevels()
	s.say(other, "o0")
	s.say(b, "b0")
	w := s.open(homeQueue, 2)
	for _, u := range w.receive().Units {
		w.want(broker.Released, release(u))
	}
	w.close()
	w = s.open(homeQueue, 1)
	w.want(broker.Released, release(w.one("o0"))) // only level 2 waits in the shared group
	s.sayTyped(a, noteType, "a0")                 // and now level 9 does too
	w.commit(w.one("a0"))
	w.want(broker.Released, release(w.one("o0"))) // and no more
	s.equal("then", w.drain(), "[o0 b0]")
}

// bestWherever has messages wait in every way: unread, filed, and given back.
func bestWherever(s *stage) {
	a, b, other := s.twoLevels()
	s.say(other, "o0", "o1")
	s.say(b, "b0")
	w := s.open(homeQueue, 2)
	rep := w.receive() // both are in a reader's hands
	s.equal("received", names(rep.Units), "[o0 b0]")
	for _, u := range rep.Units {
		w.want(broker.Released, release(u))
	}
	w.close()
	s.sayTyped(a, noteType, "a0") // unread, and its group has a backlog of level 2
	w = s.open(homeQueue, 1)
	w.commit(w.one("a0"))
	s.equal("then", w.drain(), "[o0 o1 b0]")
}

func topCutsAfterOrder(s *stage) {
	a, b, _ := s.twoLevels()
	w := s.open(homeQueue, 1)
	s.say(b, "b0")
	u := w.one("b0")
	s.say(b, "b1")
	s.sayTyped(a, noteType, "a0")
	s.sayTyped(a, noteType, "a1")
	s.open(homeQueue, 1).none() // files them
	w.want(broker.Released, release(u))
	w.top = 2
	u = w.one("a0", "a1")
	w.commit(u)
	w.top = 1
	s.equal("then", w.drain(), "[b0 b1]")
}

func ageing(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.PriorityAging = time.Second })
	s.priorities(broker.PriorityRule{Contract: askContract, Level: 8}, broker.PriorityRule{Contract: broker.ContractDefault, Level: 5})
	low := s.begin()
	s.say(low, "low")
	w := s.open(workQueue, 1)
	w.want(broker.Released, release(w.one("low")))
	s.h.Advance(500 * time.Millisecond)
	got := []string{}
	for i := range 6 { // a message of a better level arrives every second
		c := s.ask()
		s.sayTyped(c, noteType, fmt.Sprint("h", i))
		u := w.receive().Units[0]
		got = append(got, name(u.Messages[0]))
		w.commit(u)
		s.h.Advance(time.Second)
	}
	s.equal("order", got, "[h0 h1 h2 low h3 h4]")
}
