package brokertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/broker"
)

// guarantees has one test for each guarantee of the design that a broker alone can keep.
var guarantees = []test{
	{"TestG1_a_unit_of_work_is_all_or_nothing", unitOfWork},
	{"TestG2_order_per_conversation_and_direction", orderPerConversation},
	{"TestG3_one_holder_of_a_group", oneHolder},
	{"TestG4_fencing", fencing},
	{"TestG5_nothing_lost_nothing_doubled", nothingLost},
	{"TestG6_receive_order", receiveOrder},
	{"TestG7_the_fifth_rollback_turns_the_queue_off", fifthRollback},
	{"TestG8_dead_letters", deadLetters},
	{"TestG9_honest_counting", honestCounting},
	{"TestG10_time_is_the_stores", time10},
}

func unitOfWork(s *stage) {
	s.sendSession(workQueue, "a", "m", "next")
	w := s.open(workQueue, 1)
	u := w.one("m")
	s.say(s.begin(), "hello")
	ended := s.target("hello")
	s.end(ended, 0)
	fresh, err := s.h.Broker.NewHandle(workQueue)
	if err != nil {
		s.t.Fatalf("new handle: %v", err)
	}
	effects := []broker.Effect{
		sendTo(sinkQueue, "out"),
		{Kind: broker.EffectPutState, Key: "k", Value: []byte("v")},
		{Kind: broker.EffectBegin, Conversation: fresh, From: workSvc, To: homeSvc},
		{Kind: broker.EffectSend, Conversation: fresh, Message: message("question")},
		arm(fresh, time.Hour),
	}
	before := s.snapshot(sinkQueue).Counts
	r := w.settle(commit(u, append(slices.Clone(effects), broker.Effect{
		Kind: broker.EffectSend, Conversation: ended, Message: message("to nobody"),
	})...))
	s.equal("consequence of a commit with one bad effect", r.Consequence, broker.Refused)
	s.wantErr("send on an ended conversation", r.Err, broker.ErrUnknownConversation)
	s.equal("sink", s.snapshot(sinkQueue).Counts, before)
	s.equal("home", len(s.open(homeQueue, 4).receive().Units), 1) // the EndDialog of the other conversation, nothing else
	_, err = s.h.Broker.Endpoint(s.ctx, fresh)
	s.wantErr("endpoint of a refused BEGIN", err, broker.ErrUnknownConversation)

	u = w.one("m")
	s.equal("state after a refused put", len(u.State), 0)
	w.commit(u, effects...)
	s.equal("sink", s.drainAll(sinkQueue), "[out]")
	s.equal("home", s.drainAll(homeQueue), "[question]")
	s.equal("armed", len(s.snapshot(workQueue).Timers), 1)
	s.equal("state", string(w.one("next").State["k"]), "v")
}

func orderPerConversation(s *stage) {
	const convs, each = 3, 12
	var handles, done []string
	for i := range each {
		for c := range convs {
			if i == 0 {
				handles = append(handles, s.begin())
			}
			s.say(handles[c], fmt.Sprintf("%d:%02d", c, i))
		}
	}
	s.crowd(workQueue, 4, func(w *worker, u *broker.Unit, nth int) {
		if nth%7 == 3 {
			w.fail(u)
			return
		}
		w.commit(u)
		done = append(done, unitNames(u)...)
	})
	s.inOrder(done, convs*each)
}

// inOrder wants every conversation's messages ("c:nn") in order, total of all.
func (s *stage) inOrder(got []string, total int) {
	s.t.Helper()
	next := map[string]int{}
	for _, id := range got {
		c, n, _ := strings.Cut(id, ":")
		if want := fmt.Sprintf("%02d", next[c]); n != want {
			s.t.Fatalf("conversation %s: %s came when %s was next", c, n, want)
		}
		next[c]++
	}
	s.equal("committed", len(got), total)
}

// crowd lets n readers work in turns until queue is empty; play settles each unit, and no group is ever held twice.
func (s *stage) crowd(queue string, n int, play func(w *worker, u *broker.Unit, nth int)) {
	s.t.Helper()
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = s.open(queue, 1+i%2)
	}
	nth, idle := 0, 0
	for i := 0; idle < 2*n; i++ {
		if i > 100_000 {
			s.t.Fatalf("%s never gets empty", queue)
		}
		w := workers[i%n]
		var mine []*broker.Unit
		for _, slot := range w.slots {
			mine = append(mine, slot...)
		}
		for _, u := range mine {
			play(w, u, nth)
			nth++
		}
		w.receive()
		held := map[string]bool{}
		busy := false
		for _, o := range workers {
			for _, slot := range o.slots {
				for _, u := range slot {
					if u.Group != "" && held[u.Group] {
						s.t.Fatalf("%s is held twice", u.Group)
					}
					held[u.Group], busy = true, true
				}
			}
		}
		if idle++; busy || len(mine) > 0 {
			idle = 0
		}
	}
}

func oneHolder(s *stage) {
	s.sendSession(workQueue, "a", "a0", "a1")
	s.sendSession(workQueue, "b", "b0")
	w, v := s.open(workQueue, 1), s.openAt(s.h.Peer, workQueue, 2)
	u := w.one("a0")
	v.one("b0")                         // a is skipped, not waited for
	s.sendSession(workQueue, "a", "a2") // arrivals are never blocked
	v.none()                            //
	w.commit(u)                         // and not handed over: it took nothing
	s.equal("now", names(v.receive().Units), "[a1]")
}

func fencing(s *stage) {
	s.send(plainQueue, "m")
	got, err := s.h.Broker.Receive(s.ctx, plainQueue, broker.ReceiveOptions{Max: 1, Top: 1, Lock: 5 * time.Second})
	s.equal("received", []any{len(got), err}, "[1 <nil>]")
	old := got[0]
	s.advance(6 * time.Second)
	w := s.open(plainQueue, 1)
	u := w.one("m")
	_, err = s.h.Broker.Settle(s.ctx, plainQueue, old.Token, commit(old.Unit, sendTo(sinkQueue, "out")))
	s.wantErr("settle with an old token", err, broker.ErrLockLost)
	_, err = s.h.Broker.Renew(s.ctx, plainQueue, old.Token)
	s.wantErr("renew an old token", err, broker.ErrLockLost)
	s.equal("side effects of the old delivery", len(s.snapshot(sinkQueue).Messages), 0)
	w.commit(u)
	s.equal("left", len(s.snapshot(plainQueue).Messages), 0)
}

func nothingLost(s *stage) {
	s.audit()
	s.send(plainQueue, numbered("p", 10)...)
	s.sendSession(plainQueue, "a", numbered("a", 10)...)
	c := s.begin()
	s.say(c, numbered("c", 10)...)
	s.audit()
	w := s.open(plainQueue, 4)
	units := w.receive().Units
	s.audit()
	w.fail(units[0])
	w.want(broker.RolledBack, pause(units[1], time.Minute))
	w.want(broker.DeadLettered, broker.Settlement{Unit: units[2], Verdict: broker.VerdictDeadLetter, Reason: "Bad"})
	s.audit()
	s.status(workQueue, broker.QueueOff)
	s.say(c, "late")
	s.audit()
	s.expire()
	s.audit()
	s.status(workQueue, broker.QueueActive)
	s.transmitAll(homeQueue)
	s.equal("dialog", len(s.drainAll(workQueue)), 11)
	s.advance(time.Minute)
	s.equal("plain and session, but for the dead letter", len(s.drainAll(plainQueue)), 19)
	s.audit()
}

// audit wants no difference in any queue.
func (s *stage) audit() {
	s.t.Helper()
	diffs, err := s.h.Broker.Audit(s.ctx)
	if err != nil || !diffs.Clean() {
		s.t.Fatalf("audit: %v, %+v", err, diffs)
	}
	for _, q := range []string{plainQueue, workQueue, homeQueue, sinkQueue} {
		s.snapshot(q)
	}
}

func receiveOrder(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	w.commit(u, arm(u.Messages[0].Conversation, time.Second))
	s.say(c, "m1", "m2")
	s.end(c, 12)
	s.advance(2 * time.Second)
	w.top = 10
	w.one("Timer", "Error", "m1", "m2")
}

func fifthRollback(s *stage) {
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	for i := range 4 {
		u := w.one("m")
		s.equal("count", u.Messages[0].PoisonCount, i)
		w.fail(u)
	}
	w.want(broker.QueueTurned, failure(w.one("m")))
	info := s.queue(workQueue)
	s.equal("status", info.Status, broker.QueueOff)
	s.equal("left in place", info.Counts.Ready, 1)
	ev := s.events(workQueue, "queue_disabled")
	s.equal("events", len(ev), 1)
	for field, want := range map[string]string{
		"reason": "poison", "rollbacks": "5", "message_id": "m", "last_error": "HandlerError: it broke",
	} {
		s.equal("event field "+field, ev[0].Fields[field], want)
	}
	rep, err := w.turn(broker.TurnRequest{Free: []int{0}, Empty: 1})
	s.equal("told that it is off", []any{rep.Off, len(rep.Units), err}, "[true 0 <nil>]")
}

func deadLetters(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery, q.DeadLetterTTL = 2, true })
	seqs := s.send(plainQueue, "often", "asked")
	if _, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{MessageID: "old", Body: []byte("old"), TTL: time.Second}); err != nil {
		s.t.Fatal(err)
	}
	s.advance(2 * time.Second)
	w := s.open(plainQueue, 3)
	for _, u := range w.receive().Units {
		if name(u.Messages[0]) == "asked" {
			w.want(broker.DeadLettered, broker.Settlement{Unit: u, Verdict: broker.VerdictDeadLetter, Reason: "NoGood", Description: "at all"})
		} else {
			w.fail(u)
		}
	}
	w.want(broker.DeadLettered, failure(w.one("often")))
	w.none()
	s.advance(365 * 24 * time.Hour)
	byName := map[string]broker.Message{}
	for _, m := range s.dead(plainQueue) {
		byName[name(m)] = m
	}
	s.equal("dead letters", len(byName), 3)
	for id, want := range map[string]string{
		"often": "MaxDeliveryCountExceeded|plain|2|HandlerError: it broke", "asked": "NoGood|plain|0|", "old": "TTLExpiredException|plain|0|",
	} {
		m := byName[id]
		s.equal(id, fmt.Sprintf("%s|%s|%d|%s", m.Dead.Reason, m.Dead.Source, m.DeliveryCount, m.Dead.LastError), want)
	}
	s.equal("description", byName["asked"].Dead.Description, "at all")
	s.equal("number", byName["often"].SequenceNumber, seqs[0])
	s.equal("counter", s.queue(plainQueue).Counts.DeadLetter, 3)
}

func honestCounting(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.Rollbacks = 50; q.MaxDelivery = 100 })
	s.send(workQueue, "m")
	count := func(what string, want int) {
		s.t.Helper()
		m := s.stored(workQueue, "m")
		s.equal("counts after "+what, []int{m.DeliveryCount, m.PoisonCount}, []int{want, want})
	}
	w := s.open(workQueue, 1)
	w.want(broker.Released, release(w.one("m")))
	count("a delivery that reached no handler", 0)
	w.one("m")
	w.close()
	count("a shutdown", 0)
	w = s.open(workQueue, 1)
	w.fail(w.one("m"))
	count("a failure", 1)
	w.one("m")
	s.equal("death told", len(s.expire().DeadReaders), 1)
	count("a crash", 2)
	got, err := s.h.Broker.Receive(s.ctx, workQueue, broker.ReceiveOptions{Max: 1, Top: 1, Lock: time.Second})
	s.equal("received", []any{len(got), err}, "[1 <nil>]")
	s.advance(2 * time.Second)
	count("a lost lock", 3)
	for range 10 {
		if _, err := s.h.Broker.Peek(s.ctx, workQueue, 0, 10); err != nil {
			s.t.Fatal(err)
		}
	}
	count("ten peeks", 3)
	w = s.open(workQueue, 1)
	w.commit(w.one("m"))
	s.equal("records", s.snapshot(workQueue).Attempts, 0)
}

func time10(s *stage) {
	const ms = time.Millisecond
	s.send(plainQueue, "retry")
	w := s.open(plainQueue, 1)
	w.want(broker.RolledBack, pause(w.one("retry"), 3*time.Second))
	if _, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{MessageID: "later", Body: []byte("later"), Delay: 2 * time.Second}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{MessageID: "ttl", Body: []byte("ttl"), TTL: time.Second}); err != nil {
		s.t.Fatal(err)
	}
	s.equal("before its end", len(s.peek(plainQueue)), 1)
	s.advance(time.Second - ms)
	w.want(broker.Released, release(w.one("ttl")))
	s.advance(ms)
	w.none()
	s.advance(time.Second - ms)
	w.none()
	s.advance(ms)
	w.commit(w.one("later"))
	s.advance(time.Second - ms)
	w.none()
	s.advance(ms)
	w.commit(w.one("retry"))
}

// peek is the names of the messages that can be peeked as ready.
func (s *stage) peek(path string) []string {
	s.t.Helper()
	ms, err := s.h.Broker.Peek(s.ctx, path, 0, 1000)
	if err != nil {
		s.t.Fatalf("peek %s: %v", path, err)
	}
	var ids []string
	for _, m := range ms {
		if m.Status == broker.StatusReady {
			ids = append(ids, name(m))
		}
	}
	return ids
}
