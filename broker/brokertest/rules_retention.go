package brokertest

import (
	"fmt"
	"time"

	"parley/broker"
)

// retentionRules are the rules about messages that are kept (RT).
var retentionRules = []test{
	{"TestT_RT_1_received_0_ready_1_sent_3", retainedStatuses},
	{"TestT_RT_2_what_is_kept_is_no_backlog", keptIsNoBacklog},
	{"TestT_RT_3_END_removes_all_and_the_far_sides_END_nothing", func(s *stage) {
		for _, code := range []int{0, 12} {
			c, h := s.retainedDialog()
			s.end(c, code)
			s.equal("after the far side's END", len(s.kept(h)) >= 3, true)
			s.end(h, 0)
			s.equal("after END", s.queue(workQueue).Counts.Retained, 0)
			_, err := s.h.Broker.Retained(s.ctx, h)
			s.equal("rows of the ended side", []any{s.keptRows(h), err == nil}, "[[] true]")
		}
	}},
	{"TestT_RT_4_a_rollback_keeps_nothing", keptRolledBack},
	{"TestT_RT_4_a_commit_beside_a_rollback_keeps_its_own", keptBesideRefused},
	{"TestT_RT_5_both_sides_on_one_queue", keptOnOneQueue},
	{"TestRT_7_sends_from_a_queue_that_is_off", func(s *stage) {
		_, h := s.retainedDialog()
		s.status(workQueue, broker.QueueOff)
		_, err := s.h.Broker.SendOn(s.ctx, h, message("x"))
		s.wantErr("send from a queue that is off and retains", err, broker.ErrSendRetention)
		s.alter(workQueue, func(q *broker.QueueSettings) { q.Retention = false })
		s.say(h, "y")
		s.equal("without retention", s.drainAll(homeQueue), "[r0 y]")
	}},
	{"TestRT_9_a_switch_concerns_what_comes_later", func(s *stage) {
		c, h := s.retainedDialog()
		s.alter(workQueue, func(q *broker.QueueSettings) { q.Retention = false })
		s.say(c, "m2")
		s.say(h, "r1")
		s.equal("drained", s.drainAll(workQueue), "[m1 m2]")
		s.equal("kept", s.keptRows(h), "[m0=0 r0=3]")
		s.end(h, 0)
		s.equal("after END", s.queue(workQueue).Counts.Retained, 0)
	}},
	{"TestRT_10_system_messages_are_kept_too", func(s *stage) {
		c, h := s.retainedDialog()
		s.timer(h, time.Second)
		s.end(c, 12)
		s.advance(time.Second)
		w := s.open(workQueue, 1)
		for _, id := range []string{"Timer", "Error", "m1"} {
			w.commit(w.one(id))
		}
		s.equal("kept", s.keptRows(h), "[m0=0 m1=0 r0=3 Error=0 Timer=0]")
	}},
	{"TestRT_11_a_handler_reads_what_is_kept_before_its_END", func(s *stage) {
		c, h := s.retainedDialog()
		s.say(c, "undo")
		w := s.open(workQueue, 1)
		w.commit(w.one("m1"))
		u := w.one("undo")
		s.equal("kept", s.keptRows(h), "[m0=0 m1=0 r0=3 undo=1]")
		w.commit(u, broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("undone")},
			broker.Effect{Kind: broker.EffectEnd, Conversation: h})
		s.equal("after END", s.queue(workQueue).Counts.Retained, 0)
		s.equal("far side", s.drainAll(homeQueue), "[r0 undone EndDialog]")
	}},
	{"TestRT_the_initiators_side_keeps_too", func(s *stage) {
		s.alter(homeQueue, func(q *broker.QueueSettings) { q.Retention = true })
		c := s.begin()
		s.say(c, "m0")
		s.say(s.target("m0"), "r0", "r1")
		w := s.open(homeQueue, 1)
		w.commit(w.one("r0"))
		s.equal("kept", s.keptRows(c), "[m0=3 r0=0 r1=1]")
		s.equal("target", s.queue(workQueue).Counts.Retained, 0)
	}},
}

// retainedDialog begins a dialog with a target that retains: it has received m0, not m1, and sent r0.
func (s *stage) retainedDialog() (initiator, target string) {
	s.t.Helper()
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Retention = true })
	c := s.begin()
	s.say(c, "m0", "m1")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	h := u.Messages[0].Conversation
	w.commit(u, broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("r0")})
	w.close()
	return c, h
}

func (s *stage) kept(handle string) []broker.RetainedMessage {
	s.t.Helper()
	rows, err := s.h.Broker.Retained(s.ctx, handle)
	if err != nil {
		s.t.Fatalf("retained messages of %s: %v", handle, err)
	}
	return rows
}

// keptRows is the retained rows of handle as name=status: first those with a number, by name, then the others.
func (s *stage) keptRows(handle string) []string {
	s.t.Helper()
	var app, system []string
	for _, m := range s.kept(handle) {
		row := fmt.Sprintf("%s=%d", name(m.Message), m.RetainedStatus)
		if m.Kind == broker.KindApp {
			app = insert(app, row)
		} else {
			system = insert(system, row)
		}
	}
	return append(app, system...)
}

// insert puts v into its place in a sorted list.
func insert(list []string, v string) []string {
	for i := range list {
		if v < list[i] {
			return append(list[:i:i], append([]string{v}, list[i:]...)...)
		}
	}
	return append(list, v)
}

func retainedStatuses(s *stage) {
	_, h := s.retainedDialog()
	s.equal("kept", s.keptRows(h), "[m0=0 m1=1 r0=3]")
	for _, m := range s.kept(h) {
		to := workSvc
		if m.RetainedStatus == 3 {
			to = homeSvc
		}
		s.equal("service of "+name(m.Message), m.Service, to)
	}
	w := s.open(workQueue, 1)
	u := w.one("m1")
	s.equal("in a unit", s.keptRows(h), "[m0=0 m1=1 r0=3]")
	w.commit(u)
	s.equal("committed", s.keptRows(h), "[m0=0 m1=0 r0=3]")
	s.equal("far side has its own", s.drainAll(homeQueue), "[r0]")
}

func keptIsNoBacklog(s *stage) {
	c, h := s.retainedDialog()
	s.equal("received", s.drainAll(workQueue), "[m1]")
	w := s.open(workQueue, 1)
	w.none()
	counts := s.snapshot(workQueue).Counts
	s.equal("counts", []int64{counts.Ready, counts.Total, counts.Retained}, "[0 0 3]")
	s.equal("asleep", s.snapshot(workQueue).Asleep, true)
	s.say(h, "r1") // its copy stays here
	got, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 10, Conversation: h})
	s.equal("received again", []any{len(got), err}, "[0 <nil>]")
	s.equal("kept", s.queue(workQueue).Counts.Retained, 4)
	s.equal("still asleep", s.snapshot(workQueue).Asleep, true)
	s.say(c, "m2")
	s.equal("woken by what arrived", s.snapshot(workQueue).Asleep, false)
}

func keptRolledBack(s *stage) {
	c, h := s.retainedDialog()
	send := broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("never")}
	w := s.open(workQueue, 1)
	r := w.settle(commit(w.one("m1"), send, broker.Effect{Kind: broker.EffectEnd, Conversation: c}))
	s.equal("consequence", r.Consequence, broker.Refused)
	s.equal("kept", s.keptRows(h), "[m0=0 m1=1 r0=3]")
	for want, st := range map[broker.Consequence]broker.Settlement{broker.RolledBack: failure(nil), broker.Released: release(nil)} {
		st.Unit, st.Effects = w.one("m1"), []broker.Effect{send}
		w.want(want, st)
		s.equal("kept", s.keptRows(h), "[m0=0 m1=1 r0=3]")
	}
	w.want(broker.DeadLettered, broker.Settlement{Unit: w.one("m1"), Verdict: broker.VerdictDeadLetter, Reason: "bad"})
	s.equal("kept", s.keptRows(h), "[m0=0 r0=3]")
	s.equal("count", s.queue(workQueue).Counts.Retained, 2)
}

// keptBesideRefused settles two units in one turn, of which one is refused: what the other received and sent is kept.
func keptBesideRefused(s *stage) {
	c, h := s.retainedDialog()
	d := s.begin()
	s.say(d, "n0")
	g := s.target("n0")
	w := s.open(workQueue, 2)
	units := w.receive().Units
	s.equal("received", names(units), "[m1 n0]")
	var settle []broker.Settlement
	for _, u := range units {
		own := u.Messages[0].Conversation
		st := commit(u, broker.Effect{Kind: broker.EffectSend, Conversation: own, Message: message("r1")})
		if own == h { // an END of another queue's conversation
			st.Effects = append(st.Effects, broker.Effect{Kind: broker.EffectEnd, Conversation: c})
		}
		settle = append(settle, st)
	}
	if _, err := w.turn(broker.TurnRequest{Settle: settle}); err != nil {
		s.t.Fatal(err)
	}
	s.equal("of the refused one", s.keptRows(h), "[m0=0 m1=1 r0=3]")
	s.equal("of the other", s.keptRows(g), "[n0=0 r1=3]")
	s.equal("count", s.queue(workQueue).Counts.Retained, 4)
	s.end(d, 0)
	s.end(g, 0)
	s.equal("count after END of the other", s.queue(workQueue).Counts.Retained, 2)
}

func keptOnOneQueue(s *stage) {
	s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Twin", Queue: homeQueue, Contracts: []string{broker.ContractDefault}}}})
	s.alter(homeQueue, func(q *broker.QueueSettings) { q.Retention = true })
	c := s.beginWith("//t/Twin", "")
	s.say(c, "m0")
	h := s.stored(homeQueue, "m0").Conversation
	s.equal("sender's copy", s.keptRows(c), "[m0=3]")
	s.equal("receiver's row", s.keptRows(h), "[m0=1]")
	s.equal("received once", s.drainAll(homeQueue), "[m0]")
	s.equal("receiver's row", s.keptRows(h), "[m0=0]")
	s.end(c, 0)
	s.equal("after the sender's END", []any{s.keptRows(c), s.keptRows(h)}, "[[] [m0=0 EndDialog=1]]")
	s.end(h, 0)
	s.equal("after both", s.queue(homeQueue).Counts.Retained, 0)
}
