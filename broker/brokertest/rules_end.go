package brokertest

import (
	"fmt"
	"time"

	"parley/broker"
)

// endRules are END CONVERSATION in every state, and what counts as a failed attempt.
var endRules = []test{
	{"TestEC_every_form_in_every_state", endTable},
	{"TestEC_what_waits_for_transmission", endWithWaiting},
	{"TestEC_an_END_WITH_ERROR_that_drops_the_first_message_comes_back_to_nobody", func(s *stage) {
		s.status(workQueue, broker.QueueOff)
		c := s.begin()
		s.say(c, "m0")
		s.status(workQueue, broker.QueueActive)
		s.say(c, "m1") // behind m0, which still waits for transmission
		s.end(c, 127)
		for _, m := range s.snapshot(homeQueue).Messages {
			if m.Place != broker.PlaceTransit { // what it dropped waits there until the transmitter meets it
				s.t.Fatalf("an Error came back at once: %+v", m)
			}
		}
	}},
	{"TestEC_3_a_dead_handle_does_nothing_any_more", func(s *stage) {
		c := s.begin()
		s.say(c, "m")
		h := s.target("m")
		s.end(h, 0)
		s.end(c, 0)
		_, err := s.h.Broker.SendOn(s.ctx, h, message("x"))
		s.wantErr("send in CD", err, broker.ErrUnknownConversation)
		_, err = s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Conversation: h})
		s.wantErr("receive in CD", err, broker.ErrUnknownConversation)
		s.wantErr("move in CD", s.h.Broker.Move(s.ctx, h, "6d0b9a2e-3f5c-4b60-9d1f-1c9b6f0a7e55", 0), broker.ErrMoveState)
		_, err = s.h.Broker.SendOn(s.ctx, c, message("x"))
		s.wantErr("send on a handle that is gone", err, broker.ErrUnknownConversation)
		s.wantErr("END of a handle that is gone", s.h.Broker.End(s.ctx, c, broker.Ending{}, 0), broker.ErrUnknownConversation)
	}},
	{"TestDG_9_MOVE_stays_within_a_service", func(s *stage) {
		c := s.begin()
		s.say(c, "m")
		s.apply(broker.Definitions{Services: []broker.Service{{Name: "//t/Twin", Queue: workQueue, Contracts: []string{broker.ContractDefault}}}})
		s.say(s.beginWith("//t/Twin", ""), "n")
		err := s.h.Broker.Move(s.ctx, s.target("m"), s.endpoint(s.target("n")).Group, 0)
		s.wantErr("move to a group of another service", err, broker.ErrMoveTarget)
	}},
	{"TestT_PM_8_a_host_killed_five_times", func(s *stage) {
		s.say(s.begin(), "KILL", "behind")
		s.equal("starts", s.crashes(workQueue, "KILL"), 5)
		s.equal("status", s.queue(workQueue).Status, broker.QueueOff)
		s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
		s.equal("still there, in order", s.peek(workQueue), "[KILL behind]")
	}},
	{"TestT_PM_9_every_way_to_fail_counts_1", everyFailure},
}

// form is a way to end a conversation.
type form struct {
	name string
	e    broker.Ending
}

var forms = []form{{"plain", broker.Ending{}}, {"WITH ERROR", broker.Ending{Code: 12, Text: "no"}}, {"WITH CLEANUP", broker.Ending{Cleanup: true}}}

// outcome is what END leads to: its error, or what the far side hears and the states of both sides; "" is an endpoint that is
// gone.
type outcome struct {
	err       error
	hears     string
	here, far broker.State
}

// outcomeOf is the table of EC. Closed initiators go at once.
func outcomeOf(st broker.State, f form, initiator bool) outcome {
	closed, farClosed := broker.StateClosed, broker.State("")
	if initiator {
		closed, farClosed = "", broker.StateClosed
	}
	cleanup := f.e.Cleanup
	switch st {
	case broker.StateStartedOutbound:
		return outcome{hears: "[]"}
	case broker.StateConversing:
		switch {
		case cleanup:
			return outcome{nil, "[]", "", broker.StateConversing}
		case f.e.Code > 0:
			return outcome{nil, "[Error]", broker.StateDisconnectedOutbound, broker.StateError}
		}
		return outcome{nil, "[EndDialog]", broker.StateDisconnectedOutbound, broker.StateDisconnectedInbound}
	case broker.StateDisconnectedInbound, broker.StateError:
		if cleanup {
			return outcome{nil, "[]", "", broker.StateDisconnectedOutbound}
		}
		return outcome{nil, "[]", closed, farClosed}
	case broker.StateDisconnectedOutbound:
		if cleanup {
			return outcome{nil, "[]", "", broker.StateDisconnectedInbound}
		}
		return outcome{broker.ErrConversationState, "[]", st, broker.StateDisconnectedInbound}
	}
	if cleanup {
		return outcome{nil, "[]", "", ""}
	}
	return outcome{broker.ErrConversationState, "[]", st, ""}
}

func endTable(s *stage) {
	n := 0
	for _, initiator := range []bool{true, false} {
		states := []broker.State{broker.StateConversing, broker.StateDisconnectedInbound, broker.StateError, broker.StateDisconnectedOutbound}
		if initiator {
			states = append(states, broker.StateStartedOutbound)
		} else {
			states = append(states, broker.StateClosed)
		}
		for _, st := range states {
			for _, f := range forms {
				n++
				s.endOnce(n, initiator, st, f)
			}
		}
	}
}

// endOnce brings a fresh dialog into st and ends that side.
func (s *stage) endOnce(n int, initiator bool, st broker.State, f form) {
	s.t.Helper()
	what := fmt.Sprintf("END %s in %s, initiator %v: ", f.name, st, initiator)
	me, far := s.inState(n, initiator, st)
	own, other := workQueue, homeQueue
	if initiator {
		own, other = homeQueue, workQueue
	}
	s.drainAll(other)
	want := outcomeOf(st, f, initiator)
	err := s.h.Broker.End(s.ctx, me, f.e, 0)
	if want.err != nil {
		s.wantErr(what, err, want.err)
	} else if err != nil {
		s.t.Fatalf("%s%v", what, err)
	}
	s.equal(what+"far side hears", s.drainAll(other), want.hears)
	s.equal(what+"own queue", s.drainAll(own), "[]")
	s.equal(what+"states", []broker.State{s.stateOf(me), s.stateOf(far)}, []broker.State{want.here, want.far})
	s.equal(what+"counts", []broker.Counts{s.snapshot(own).Counts, s.snapshot(other).Counts}, []broker.Counts{{}, {}})
}

// inState begins a dialog and brings one side of it into st, with a message unread on it unless it has ended.
func (s *stage) inState(n int, initiator bool, st broker.State) (me, far string) {
	s.t.Helper()
	c := s.begin()
	if st == broker.StateStartedOutbound {
		return c, ""
	}
	s.say(c, fmt.Sprint("m", n))
	h := s.target(fmt.Sprint("m", n))
	s.say(h, fmt.Sprint("r", n))
	me, far = h, c
	if initiator {
		me, far = c, h
	}
	switch st {
	case broker.StateDisconnectedInbound:
		s.end(far, 0)
	case broker.StateError:
		s.end(far, 12)
	case broker.StateDisconnectedOutbound:
		s.end(me, 0)
	case broker.StateClosed:
		s.end(far, 0)
		s.end(me, 0)
	}
	s.equal("state", s.stateOf(me), st)
	return me, far
}

// stateOf is the state of handle, "" when there is no such endpoint.
func (s *stage) stateOf(handle string) broker.State {
	s.t.Helper()
	if handle == "" {
		return ""
	}
	e, err := s.h.Broker.Endpoint(s.ctx, handle)
	if err != nil {
		s.wantErr("endpoint "+handle, err, broker.ErrUnknownConversation)
	}
	return e.State
}

// endWithWaiting ends an initiator that has messages in its transmission queue.
func endWithWaiting(s *stage) {
	for i, want := range []string{"[m1 m2 EndDialog]", "[Error]", "[]"} {
		c := s.begin()
		s.say(c, "m0")
		s.drainAll(workQueue)
		s.status(workQueue, broker.QueueOff)
		s.say(c, "m1", "m2")
		if err := s.h.Broker.End(s.ctx, c, forms[i].e, 0); err != nil {
			s.t.Fatal(err)
		}
		s.snapshot(homeQueue)
		s.status(workQueue, broker.QueueActive)
		s.transmitAll(homeQueue)
		s.equal(forms[i].name+" in CO", s.drainAll(workQueue), want)
	}
	for i, code := range []int{0, 12} { // the far side ended: nothing more goes to it
		c := s.begin()
		id := fmt.Sprint("n", i)
		s.say(c, id)
		h := s.target(id)
		s.status(workQueue, broker.QueueOff)
		s.say(c, "late")
		s.end(h, code)
		s.end(c, 0)
		s.status(workQueue, broker.QueueActive)
		s.transmitAll(homeQueue)
		s.equal("target", s.drainAll(workQueue), "[]")
		s.equal("states", []broker.State{s.stateOf(c), s.stateOf(h)}, []broker.State{"", broker.StateClosed})
	}
}

func everyFailure(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.On, q.MaxDelivery = false, 100 })
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	reasons := []string{
		broker.ReasonHandlerError, broker.ReasonTrap, broker.ReasonStackOverflow, broker.ReasonDeadlineExceeded, broker.ReasonFuelExhausted,
		broker.ReasonMemoryLimit, broker.ReasonOutputLimit, broker.ReasonEffectLimit, broker.ReasonHostCallLimit, broker.ReasonCapabilityDenied,
	}
	for i, reason := range reasons {
		u := w.one("m")
		m := u.Messages[0]
		s.equal("counts before "+reason, []int{m.DeliveryCount, m.PoisonCount}, []int{i, i})
		st := failure(u)
		st.FailReason, st.FailText = reason, "so it was"
		w.want(broker.RolledBack, st)
		rows, err := s.h.Broker.Peek(s.ctx, workQueue, 0, 1)
		if err != nil || len(rows) != 1 {
			s.t.Fatalf("peek: %v, %v", rows, err)
		}
		s.equal("last error", rows[0].LastError, reason+": so it was")
	}
	n := len(reasons)
	w.one("m") // and the host dies
	s.advance(broker.DefaultLease + time.Second)
	m := s.open(workQueue, 1).one("m").Messages[0]
	s.equal("counts after a host's death", []int{m.DeliveryCount, m.PoisonCount}, []int{n + 1, n + 1})
}
