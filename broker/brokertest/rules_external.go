package brokertest

import (
	"encoding/json"
	"time"

	"parley/broker"
)

// externalRules are the rules of external activation (AC-10, AC-19, AC-20).
var externalRules = []test{
	{"TestAC_20_one_event_until_somebody_receives", oneCall},
	{"TestAC_20_nobody_comes_so_it_is_told_again", toldAgain},
	{"TestAC_10_whoever_finds_nothing_keeps_it_quiet_for_5_s", emptyKeepsQuiet},
	{"TestAC_10_a_further_reader_would_have_work", furtherReader},
	{"TestAC_13_one_group_needs_one_reader", oneGroup},
	{"TestAC_14_a_receive_from_one_conversation_counts_for_nothing", fromOneConversation},
	{"TestAC_8_not_while_it_is_off_and_at_once_when_it_is_on", func(s *stage) {
		s.calling(workQueue)
		s.send(workQueue, "m")
		s.status(workQueue, broker.QueueReceiveDisabled)
		s.advance(2 * time.Minute)
		s.equal("off", s.calls(workQueue), 1)
		s.status(workQueue, broker.QueueActive)
		s.equal("on", s.calls(workQueue), 2)
	}},
	{"TestAC_17_what_waits_already_when_it_is_applied", func(s *stage) {
		s.send(plainQueue, "m")
		s.calling(plainQueue)
		s.keep()
		s.equal("called", s.calls(plainQueue), 1)
		s.calling(plainQueue) // the same again changes nothing
		s.keep()
		s.equal("called", s.calls(plainQueue), 1)
	}},
	{"TestAC_9_dialogs_timers_and_rollbacks_too", dialogsCall},
	{"TestAC_scheduled_messages_call_when_they_are_due", func(s *stage) {
		s.calling(plainQueue)
		m := message("later")
		m.Delay = time.Minute
		if _, err := s.h.Broker.Send(s.ctx, plainQueue, m); err != nil {
			s.t.Fatal(err)
		}
		s.advance(59 * time.Second)
		s.equal("not yet", s.calls(plainQueue), 0)
		s.advance(time.Second)
		s.equal("due", s.calls(plainQueue), 1)
	}},
	{"TestAC_what_is_parked_needs_nobody", func(s *stage) {
		s.calling(workQueue)
		s.parked("m0", "m1")
		s.advance(2 * time.Minute)
		s.equal("parked", s.calls(workQueue), 1) // for m0, when it came
		s.resubmit(1)
		s.equal("goes on", s.calls(workQueue), 2)
	}},
	{"TestAC_of_an_unknown_queue", func(s *stage) {
		_, err := s.h.Broker.Apply(s.ctx, broker.Definitions{Notify: []broker.EventNotification{{Event: broker.EventQueueActivation, Queue: "nowhere", To: homeSvc}}}, true)
		s.wantErr("apply", err, broker.ErrUnknownEntity)
	}},
}

// calling has queue call for readers: events go to homeQueue.
func (s *stage) calling(queue string) {
	s.t.Helper()
	s.apply(broker.Definitions{Notify: []broker.EventNotification{{Event: broker.EventQueueActivation, Queue: queue, To: homeSvc}}})
}

// calls is how many calls queue made, each with its event and its message.
func (s *stage) calls(queue string) int {
	s.t.Helper()
	s.transmitAll(queue)
	n := len(s.events(queue, broker.EventQueueActivation))
	ms, err := s.h.Broker.Peek(s.ctx, homeQueue, 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	told := 0
	for _, m := range ms {
		var e struct{ Type, Queue, Namespace string }
		if m.Type != "parley/EventNotification" {
			continue
		}
		if err := json.Unmarshal(m.Body, &e); err != nil {
			s.t.Fatalf("%s: %v", m.Body, err)
		}
		if e.Type == broker.EventQueueActivation && e.Queue == queue && e.Namespace != "" {
			told++
		}
	}
	s.equal("messages and events", told, n)
	return n
}

func oneCall(s *stage) {
	s.calling(plainQueue)
	s.send(plainQueue, "p0")
	s.equal("at once", s.calls(plainQueue), 1)
	s.send(plainQueue, "p1")
	s.advance(30 * time.Second)
	s.equal("quiet", s.calls(plainQueue), 1)
	e := s.events(plainQueue, broker.EventQueueActivation)[0]
	s.equal("waiting", e.Fields["ready"], 1)
	s.equal("received", s.drainAll(plainQueue), "[p0 p1]")
	s.advance(10 * time.Second)
	s.equal("nothing waits", s.calls(plainQueue), 1)
	s.send(plainQueue, "p2")
	s.equal("the next one", s.calls(plainQueue), 2)
	s.audit()
}

func toldAgain(s *stage) {
	s.calling(plainQueue)
	s.send(plainQueue, "p")
	s.advance(59 * time.Second)
	s.equal("quiet", s.calls(plainQueue), 1)
	s.advance(time.Second)
	s.equal("again", s.calls(plainQueue), 2)
	if _, err := s.h.Broker.Purge(s.ctx, plainQueue); err != nil {
		s.t.Fatal(err)
	}
	s.advance(5 * time.Minute)
	s.equal("nothing waits", s.calls(plainQueue), 2)
}

func emptyKeepsQuiet(s *stage) {
	s.calling(plainQueue)
	w := s.open(plainQueue, 1)
	w.none()
	s.advance(2 * time.Second)
	w.none()
	s.send(plainQueue, "p")
	s.advance(4 * time.Second)
	s.equal("whoever looked 4 s ago may look again", s.calls(plainQueue), 0)
	s.advance(time.Second)
	s.equal("after 5 s", s.calls(plainQueue), 1)
}

// furtherReader has a reader that is busy while more waits: another one would have useful work, at most one every 5 s.
func furtherReader(s *stage) {
	s.calling(plainQueue)
	s.send(plainQueue, numbered("p", 3)...)
	s.equal("the first", s.calls(plainQueue), 1)
	w := s.open(plainQueue, 1)
	u := w.one("p0")
	s.advance(4 * time.Second)
	s.equal("not yet", s.calls(plainQueue), 1)
	s.advance(time.Second)
	s.equal("another", s.calls(plainQueue), 2)
	w.commit(u)
	v := s.open(plainQueue, 3)
	s.equal("the other", names(v.receive().Units), "[p1 p2]") // and finds nothing more for its third slot
	s.advance(9 * time.Second)
	s.equal("enough", s.calls(plainQueue), 2)
}

func oneGroup(s *stage) {
	s.calling(plainQueue)
	s.sendSession(plainQueue, "a", numbered("m", 3)...)
	w := s.open(plainQueue, 1)
	w.one("m0")
	s.advance(9 * time.Second)
	s.equal("the others wait for the first", s.calls(plainQueue), 1)
	s.sendSession(plainQueue, "b", "n")
	s.equal("another group", s.calls(plainQueue), 2)
}

func dialogsCall(s *stage) {
	s.calling(workQueue)
	c := s.begin()
	s.say(c, "m")
	s.equal("a dialog", s.calls(workQueue), 1)
	w := s.open(workQueue, 1)
	u := w.one("m")
	h := u.Messages[0].Conversation
	w.commit(u, arm(h, 20*time.Second))
	s.advance(20 * time.Second)
	s.equal("its timer", s.calls(workQueue), 2)
	w = s.open(workQueue, 1) // the lease of the first is over
	u = w.one("Timer")
	s.advance(6 * time.Second)
	w.fail(u)
	s.equal("a rollback", s.calls(workQueue), 3)
}

func fromOneConversation(s *stage) {
	s.calling(workQueue)
	c := s.begin()
	s.say(c, "m0")
	h := s.target("m0")
	d, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Conversation: h})
	if err != nil || len(d) != 1 {
		s.t.Fatalf("receive: %v, %v", d, err)
	}
	if _, err := s.h.Broker.Settle(s.ctx, workQueue, d[0].Token, broker.Settlement{Verdict: broker.VerdictCommit}); err != nil {
		s.t.Fatal(err)
	}
	s.say(c, "m1")
	s.advance(59 * time.Second)
	s.equal("nobody came for the rest", s.calls(workQueue), 1)
	s.advance(time.Second)
	s.equal("so it is told again", s.calls(workQueue), 2)
}
