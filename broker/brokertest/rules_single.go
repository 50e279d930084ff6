package brokertest

import (
	"fmt"
	"slices"
	"time"

	"parley/broker"
)

// singleRules are the rules about single messages that a unit dead-letters while it commits (ST-4, DC-1).
var singleRules = []test{
	{"TestST_4_single_messages_of_a_unit_are_dead_lettered", someOfSeveral},
	{"TestST_4_all_of_them_and_what_the_unit_sends", allOfSeveral},
	{"TestST_4_a_plain_message_with_what_its_unit_sends", onePlain},
	{"TestST_4_the_last_reason_counts", lastReason},
	{"TestST_4_a_refused_unit_dead_letters_nothing", refusedSingles},
	{"TestST_4_system_messages", systemSingles},
	{"TestST_4_a_lost_reply_dead_letters_once", lostSingles},
	{"TestDL_a_dead_letter_is_not_dead_lettered_singly", tokenSingles},
	{"TestRT_a_single_dead_letter_is_not_kept", keptBesideSingles},
	{"TestDead_letter_end_after_what_the_unit_said", endAfterSingles},
	{"TestPark_behind_a_unit_that_lost_one", parkedBehindUnit},
	{"TestPark_a_unit_cannot_move_what_it_parks", movedAndParked},
	{"TestPark_a_unit_that_ends_its_conversation_parks_nobody", endedAndParked},
}

// bury is the effect that dead-letters message i of the unit.
func bury(i int, reason string) broker.Effect {
	return broker.Effect{Kind: broker.EffectDeadLetter, Index: i, Reason: reason, Text: "because of " + reason}
}

// sendOut is the effect that sends id to sinkQueue.
func sendOut(id string) broker.Effect {
	return broker.Effect{Kind: broker.EffectSendTo, Queue: sinkQueue, Message: message(id)}
}

// reasons is the dead letters of queue with their reasons.
func (s *stage) reasons(queue string) []string {
	s.t.Helper()
	var all []string
	for _, m := range s.dead(queue) {
		all = append(all, name(m)+" "+m.Dead.Reason)
	}
	return all
}

func someOfSeveral(s *stage) {
	s.sendSession(plainQueue, "a", numbered("m", 6)...)
	w := s.open(plainQueue, 1)
	w.top = 5
	u := w.one(numbered("m", 5)...)
	w.fail(u)
	for i := range 4 { // each has failed once now
		w.want(broker.Released, release(w.one("m0")))
		if i == 0 {
			s.equal("records", s.snapshot(plainQueue).Attempts, 5)
		}
	}
	w.commit(w.one("m0"), bury(0, "First"))
	for range 4 {
		w.commit(w.receive().Units[0])
	}
	s.sendSession(plainQueue, "a", numbered("n", 4)...)
	w.commit(w.one("m5", "n0", "n1", "n2", "n3"), sendOut("out"), bury(1, "Second"), bury(3, "Third"))
	s.equal("dead", s.reasons(plainQueue), "[m0 First n0 Second n2 Third]")
	m := s.dead(plainQueue)[0]
	s.equal("the first", []any{m.DeliveryCount, m.Dead.Description, m.Dead.LastError, m.SessionID, m.SequenceNumber},
		[]any{1, "because of First", "HandlerError: it broke", "a", 1})
	s.equal("sent", s.drainAll(sinkQueue), "[out]")
	s.equal("left", []any{w.drain(), s.snapshot(plainQueue).Attempts}, []any{[]string{}, 0})
	s.audit()
}

func allOfSeveral(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1", "m2")
	w := s.open(workQueue, 1)
	w.top = 2
	rep := w.settleTake(commit(w.one("m0", "m1"), bury(1, "B"), bury(0, "A"), sendOut("out")))
	s.equal("consequence", rep.Results[0].Consequence, broker.Committed)
	s.equal("handed over", names(rep.Units), "[m2]")
	s.equal("dead", s.reasons(workQueue), "[m0 A m1 B]")
	s.equal("sent", s.drainAll(sinkQueue), "[out]")
	s.audit()
}

func onePlain(s *stage) {
	s.send(plainQueue, "p0", "p1", "p2")
	w := s.open(plainQueue, 3)
	units := w.receive().Units
	rep := w.settleTake(commit(units[0]), commit(units[1], sendOut("out"), bury(0, "Bad")), commit(units[2]))
	for _, r := range rep.Results {
		s.equal("consequence", r.Consequence, broker.Committed)
	}
	s.equal("dead", s.reasons(plainQueue), "[p1 Bad]")
	s.equal("sent", s.drainAll(sinkQueue), "[out]")
	s.equal("counts", s.queue(plainQueue).Counts.Total, 1)
	s.audit()
}

func lastReason(s *stage) {
	s.send(plainQueue, "p")
	w := s.open(plainQueue, 1)
	w.commit(w.one("p"), bury(0, "First"), sendOut("out"), bury(0, "Last"))
	s.equal("dead", s.reasons(plainQueue), "[p Last]")
	s.audit()
}

func refusedSingles(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 1)
	w.top = 2
	u := w.one("m0", "m1")
	r := w.settle(commit(u, bury(0, "Bad"), broker.Effect{Kind: broker.EffectCancelTimer, Conversation: "00000002-0000-8000-8000-00000000beef"}))
	s.equal("consequence", r.Consequence, broker.Refused)
	s.equal("dead", s.reasons(workQueue), "[]")
	s.equal("back in order", w.drain(), "[m0 m1]")
	s.wantErr("a message that is not there", s.h.Broker.CheckEffect(s.ctx, u, &broker.Effect{Kind: broker.EffectDeadLetter, Index: 2}), broker.ErrUnknownMessage)
	s.wantErr("one below the first", s.h.Broker.CheckEffect(s.ctx, u, &broker.Effect{Kind: broker.EffectDeadLetter, Index: -1}), broker.ErrUnknownMessage)
	s.audit()
}

// systemSingles dead-letters a timer, and the EndDialog, of a unit; the waiting messages stay counted right.
func systemSingles(s *stage) {
	h := s.begunTarget("m0", "m1")
	s.timer(h, time.Second)
	s.advance(time.Second)
	w := s.open(workQueue, 1)
	w.top = 2
	w.commit(w.one("Timer", "m0"), bury(0, "NoTimer"))
	s.equal("waiting", s.endpoint(h).Waiting, 1)
	s.end(s.endpoint(h).FarHandle, 0)
	w.commit(w.one("m1", "EndDialog"), bury(1, "NoEnd"))
	s.equal("dead", s.reasons(workQueue), "[Timer NoTimer EndDialog NoEnd]")
	s.equal("waiting", s.endpoint(h).Waiting, 0)
	s.audit()
}

func lostSingles(s *stage) {
	for lost := 1; lost <= 3; lost++ {
		s.sendSession(workQueue, "a", "m0", "m1")
		w := s.open(workQueue, 1)
		w.top = 2
		u := w.one("m0", "m1")
		s.h.LoseReply(0, lost)
		w.commit(u, bury(0, "Bad"), sendOut("out"))
		s.equal("dead", len(s.dead(workQueue)), lost)
		s.equal("sent", len(s.snapshot(sinkQueue).Messages), lost)
		s.equal("left", s.queue(workQueue).Counts.Locked+s.queue(workQueue).Counts.Ready, 0)
		w.close()
	}
	s.audit()
}

// tokenSingles: a dead letter cannot be dead-lettered again, as a whole or singly.
func tokenSingles(s *stage) {
	s.sendSession(workQueue, "a", "m0")
	w := s.open(workQueue, 1)
	w.commit(w.one("m0"), bury(0, "Bad"))
	dead := broker.FormatDeadLetterPath(workQueue)
	got, err := s.h.Broker.Receive(s.ctx, dead, broker.ReceiveOptions{Max: 1, Top: 1})
	if err != nil || len(got) != 1 {
		s.t.Fatalf("receive the dead letter: %d units, %v", len(got), err)
	}
	_, err = s.h.Broker.Settle(s.ctx, dead, got[0].Token, commit(nil, bury(0, "Again")))
	s.wantErr("dead-letter a dead letter", err, broker.ErrDeadLetterAgain)
	if _, err = s.h.Broker.Settle(s.ctx, dead, got[0].Token, commit(nil)); err != nil {
		s.t.Fatal(err)
	}
	s.audit()
}

func keptBesideSingles(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Retention = true })
	h := s.begunTarget("m0", "m1", "m2")
	w := s.open(workQueue, 1)
	w.top = 3
	w.commit(w.one("m0", "m1", "m2"), bury(1, "Bad"))
	s.equal("kept", s.keptRows(h), "[m0=0 m2=0]")
	s.audit()
}

func endAfterSingles(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "end" })
	h := s.begunTarget("m0", "m1", "m2")
	w := s.open(workQueue, 1)
	w.top = 2
	w.commit(w.one("m0", "m1"), bury(0, "Bad"), bury(1, "Worse"), broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("reply")})
	s.equal("ended here", w.drain(), "[]")
	s.equal("dead", s.reasons(workQueue), "[m0 Bad m1 Worse]")
	far := s.drainAll(homeQueue)
	slices.Sort(far) // an Error overtakes
	s.equal("at the far side", far, "[Error reply]")
	s.audit()
}

// parkedBehindUnit: what the handler had in its hands besides the dead letter is done, what waits behind the unit stands still.
func parkedBehindUnit(s *stage) {
	s.parking()
	s.sendSession(workQueue, "a", numbered("m", 5)...)
	w := s.open(workQueue, 1)
	w.top = 3
	rep := w.settleTake(commit(w.one("m0", "m1", "m2"), bury(1, "Bad"), bury(0, "Bad"), sendOut("out")))
	s.equal("handed over", names(rep.Units), "[]")
	s.equal("sent", s.drainAll(sinkQueue), "[out]")
	q := s.queue(workQueue)
	s.equal("parked", q.ParkedFirst, []broker.ParkedGroup{{SessionID: "a", DeadLetters: []int64{1, 2}, Waiting: 2}})
	s.equal("events", len(s.events(workQueue, "conversation_parked")), 2)
	s.audit()
	s.resubmit(2)
	w.none()
	s.resubmit(1)
	s.equal("in their old places", w.drain(), "[m0 m1 m3 m4]")
	s.released()
}

func movedAndParked(s *stage) {
	s.parking()
	h := s.begunTarget("m0", "m1")
	w := s.open(workQueue, 1)
	w.top = 2
	move := broker.Effect{Kind: broker.EffectMove, Conversation: h, Group: "6d0b9a2e-3f5c-4b60-9d1f-1c9b6f0a7e55"}
	r := w.settle(commit(w.one("m0", "m1"), bury(0, "Bad"), move))
	s.equal("dead letter and move", []any{r.Consequence, r.Err}, []any{broker.Refused, broker.ErrParked})
	r = w.settle(commit(w.one("m0"), move, bury(0, "Bad")))
	s.equal("move and dead letter", []any{r.Consequence, r.Err}, []any{broker.Refused, broker.ErrParked})
	s.alter(workQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "continue" })
	w.commit(w.one("m0"), move, bury(0, "Bad"))
	s.equal("where nothing parks", w.drain(), "[m1]")
	s.audit()
}

func endedAndParked(s *stage) {
	s.parking()
	for i, last := range []bool{false, true} {
		h := s.begunTarget(fmt.Sprint("m", i))
		effects := []broker.Effect{{Kind: broker.EffectEnd, Conversation: h}, bury(0, "Bad")}
		if last {
			slices.Reverse(effects)
		}
		w := s.open(workQueue, 1)
		w.commit(w.one(fmt.Sprint("m", i)), effects...)
		w.close()
		s.equal("dead", len(s.dead(workQueue)), i+1)
		s.released()
	}
}

// begunTarget begins a dialog, says ids on it and returns the handle of the target's side.
func (s *stage) begunTarget(ids ...string) string {
	s.t.Helper()
	s.begun(ids...)
	return s.target(ids[0])
}
