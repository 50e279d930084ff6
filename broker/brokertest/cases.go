package brokertest

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"parley/broker"
)

// cases are failures that people reported from the field, with the values that are right for us.
var cases = []test{
	{"TestCase1_the_store_is_flushed", flushed},
	{"TestCase4_a_message_that_kills_its_host_is_poison", killerPoison},
	{"TestCase4_a_message_that_kills_its_host_is_dead_lettered", killerDeadLetter},
	{"TestCase5_an_entry_whose_body_is_gone", bodyGone},
	{"TestCase5_an_entry_that_is_not_ours", notOurs},
	{"TestCase5_nothing_is_trimmed", nothingTrimmed},
	{"TestCase7_a_send_whose_reply_is_lost", sendReplyLost},
	{"TestCase11_order_after_a_failure_and_a_crash", orderAfterFailure},
	{"TestCase13_a_binary_body", binaryBody},
	{"TestCase14_size_limits", sizeLimits},
	{"TestCase16_a_failure_text_too_long_to_store", longText},
	{"TestCase25_one_bad_message", oneBadMessage},
	{"TestS11_settle_with_the_token_of_an_earlier_delivery", earlierToken},
}

// limitedCases need a store that can run out of memory or of connections.
var limitedCases = []test{
	{"TestCase2_dead_lettering_while_the_store_is_full", fullStore},
	{"TestS3_readers_do_not_starve_settlements", starvedPool},
}

func contains(s, part string) bool { return strings.Contains(s, part) }

func flushed(s *stage) {
	s.send(plainQueue, "before")
	w := s.open(plainQueue, 1)
	w.commitOne("before")
	s.h.Flush()
	_, err := w.turn(broker.TurnRequest{Free: []int{0}, Empty: 1})
	if err == nil {
		s.t.Fatalf("a turn after the flush says nothing")
	}
	_, err = s.h.Broker.Send(s.ctx, plainQueue, message("refused"))
	s.wantErr("send while the definitions are gone", err, broker.ErrUnknownEntity)
	s.keep()
	s.apply(broker.Definitions{Queues: []broker.QueueSettings{atOnce(broker.DefaultQueue(plainQueue, false))}})
	s.send(plainQueue, "m1")
	s.send(plainQueue, "m2")
	s.equal("handled", s.drainAll(plainQueue), "[m1 m2]")
	s.auditOne(plainQueue)
}

// commitOne takes the message named id and commits it, and then gets nothing.
func (w *worker) commitOne(id string) {
	w.s.t.Helper()
	w.commit(w.one(id))
	w.none()
}

// auditOne wants no difference in queue.
func (s *stage) auditOne(queue string) {
	s.t.Helper()
	diffs, err := s.h.Broker.Audit(s.ctx, queue)
	if err != nil || !diffs.Clean() {
		s.t.Fatalf("audit of %s: %v, %+v", queue, err, diffs)
	}
}

// crashes lets hosts die in the first message of queue until it stops coming, and returns how often that was.
func (s *stage) crashes(queue, id string) int {
	s.t.Helper()
	for n := range 20 {
		r, err := s.h.Broker.OpenReader(s.ctx, queue, broker.ReaderOptions{Slots: 1, Limit: 1000})
		if errors.Is(err, broker.ErrQueueDisabled) {
			return n
		}
		if err != nil {
			s.t.Fatalf("open reader: %v", err)
		}
		w := &worker{s: s, r: r, top: 1, slots: make([][]*broker.Unit, 1)}
		if us := w.receive().Units; len(us) != 1 || name(us[0].Messages[0]) != id {
			w.close()
			return n
		}
		s.expire()
	}
	s.t.Fatalf("%s kills hosts for ever", id)
	return 0
}

func killerPoison(s *stage) {
	s.sendSession(workQueue, "k", "KILL")
	s.sendSession(workQueue, "k", "OK")
	s.equal("starts", s.crashes(workQueue, "KILL"), 5)
	s.equal("status", s.queue(workQueue).Status, broker.QueueOff)
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
}

func killerDeadLetter(s *stage) {
	s.sendSession(plainQueue, "k", "KILL")
	s.sendSession(plainQueue, "k", "OK")
	s.equal("starts", s.crashes(plainQueue, "KILL"), 10)
	d := s.dead(plainQueue)
	s.equal("dead letters", len(d), 1)
	s.equal("reason", []any{d[0].Dead.Reason, d[0].DeliveryCount}, "[MaxDeliveryCountExceeded 10]")
	s.equal("host crash told", contains(d[0].Dead.LastError, broker.ReasonHostCrash), true)
	s.equal("the rest", s.drainAll(plainQueue), "[OK]")
}

func bodyGone(s *stage) {
	s.send(plainQueue, "m1", "m2", "m3")
	w := s.open(plainQueue, 3)
	units := w.receive().Units
	s.equal("received", len(units), 3)
	s.h.LoseEntry(plainQueue, units[1].Messages[0].Ref)
	s.expire() // the worker was restarted meanwhile
	s.equal("handled", s.drainAll(plainQueue), "[m1 m3]")
	s.equal("counted as lost", s.queue(plainQueue).EntriesLost, 1)
	s.equal("events", len(s.events(plainQueue, "entries_lost")), 1)
	s.snapshot(plainQueue)

	s.sendSession(plainQueue, "a", "a1", "a2", "a3")
	w = s.open(plainQueue, 1)
	u := w.one("a1")
	v := s.open(plainQueue, 1)
	v.none() // files the rest
	s.h.LoseEntry(plainQueue, s.ref(plainQueue, "a2"))
	w.commit(u)
	s.equal("handled", w.drain(), "[a3]")
	s.equal("counted as lost", s.queue(plainQueue).EntriesLost, 2)
	s.equal("locks", len(s.snapshot(plainQueue).Locks), 0)
}

// ref is where the message named id is stored.
func (s *stage) ref(queue, id string) string {
	s.t.Helper()
	m := s.stored(queue, id)
	if m == nil {
		s.t.Fatalf("%s is not stored in %s", id, queue)
	}
	return m.Ref
}

func notOurs(s *stage) {
	s.send(plainQueue, "m1")
	s.h.Spoil(plainQueue, map[string]string{"foreign": "field", "other": "\xff\x00"})
	s.send(plainQueue, "m2")
	s.equal("handled", s.drainAll(plainQueue), "[m1 m2]")
	d := s.dead(plainQueue)
	s.equal("dead letters", len(d), 1)
	s.equal("reason", d[0].Dead.Reason, broker.ReasonMalformedEnvelope)
	s.equal("raw fields kept", bytes.Contains(d[0].Body, []byte("foreign")) && bytes.Contains(d[0].Body, []byte("\xff\x00")), true)
	s.snapshot(plainQueue)
}

func nothingTrimmed(s *stage) {
	for range 20 {
		s.send(plainQueue, numbered("m", 500)...)
	}
	s.equal("stored", s.queue(plainQueue).Counts.Ready, 10_000)
	s.equal("peeked", len(s.snapshot(plainQueue).Messages), 10_000)
}

func sendReplyLost(s *stage) {
	s.h.LoseReply(0, 1)
	a := s.send(plainQueue, "m")
	s.h.LoseCall(0, 1)
	b := s.send(plainQueue, "n")
	s.equal("stored", len(s.snapshot(plainQueue).Messages), 2)
	s.equal("numbers", []int64{a[0], b[0]}, []int64{s.stored(plainQueue, "m").SequenceNumber, s.stored(plainQueue, "n").SequenceNumber})
	s.equal("handled", s.drainAll(plainQueue), "[m n]")
}

func orderAfterFailure(s *stage) {
	c1, c2 := s.begin(), s.begin()
	for i := range 5 {
		s.say(c1, numbered("m", 5)[i])
		s.say(c2, numbered("n", 5)[i])
	}
	w := s.open(workQueue, 4)
	fail := func() {
		for _, u := range w.receive().Units {
			if name(u.Messages[0]) == "m0" {
				w.want(broker.RolledBack, pause(u, time.Second))
			} else {
				w.want(broker.Released, release(u))
			}
		}
	}
	fail()
	s.equal("meanwhile", w.drain(), numbered("n", 5))
	s.advance(2 * time.Second)
	w.one("m0") // and its host is killed
	s.expire()
	v := s.openAt(s.h.Peer, workQueue, 4)
	u := v.one("m0")
	s.equal("attempts before", u.Messages[0].DeliveryCount, 2)
	v.commit(u)
	s.equal("then", v.drain(), numbered("m", 5)[1:])
}

func oneBadMessage(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 100 }) // the tenth delivery would be dead-lettered, not poison
	c1, c2 := s.begin(), s.begin()
	s.say(c1, "bad", "c1b")
	calls, lastGood := 0, ""
	play := func() {
		for {
			r, err := s.h.Broker.OpenReader(s.ctx, workQueue, broker.ReaderOptions{Slots: 1, Limit: 1000})
			if errors.Is(err, broker.ErrQueueDisabled) {
				return
			}
			w := &worker{s: s, r: r, top: 1, slots: make([][]*broker.Unit, 1)}
			us := w.settleTake().Units
			if len(us) == 0 {
				w.close()
				return
			}
			if name(us[0].Messages[0]) == "bad" {
				calls++
				w.settle(failure(us[0]))
			} else {
				lastGood = name(us[0].Messages[0])
				w.commit(us[0])
			}
			w.close()
		}
	}
	play()
	s.say(c2, "good") // waits at the sender
	s.equal("calls", calls, 5)
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
	s.status(workQueue, broker.QueueActive)
	play()
	s.equal("calls after ON without cleaning", calls, 10)
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 2)
	s.end(s.target("bad"), 127)
	s.status(workQueue, broker.QueueActive)
	s.transmitAll(homeQueue)
	play()
	s.equal("good", lastGood, "good")
	s.equal("calls after END", calls, 10)
	s.equal("far side", s.drainAll(homeQueue), "[Error]")
}

func earlierToken(s *stage) {
	s.send(plainQueue, "m")
	opt := broker.ReceiveOptions{Max: 1, Top: 1, Lock: 5 * time.Second}
	first, err := s.h.Broker.Receive(s.ctx, plainQueue, opt)
	s.equal("received", []any{len(first), err}, "[1 <nil>]")
	if _, err = s.h.Broker.Settle(s.ctx, plainQueue, first[0].Token, failure(first[0].Unit)); err != nil {
		s.t.Fatalf("abandon: %v", err)
	}
	second, err := s.h.Peer.Receive(s.ctx, plainQueue, opt)
	s.equal("received again", []any{len(second), err}, "[1 <nil>]")
	s.equal("count", second[0].Unit.Messages[0].DeliveryCount, 1)
	_, err = s.h.Broker.Settle(s.ctx, plainQueue, first[0].Token, commit(first[0].Unit, sendTo(sinkQueue, "out")))
	s.wantErr("settle with the first token", err, broker.ErrLockLost)
	s.equal("its side effects", len(s.snapshot(sinkQueue).Messages), 0)
	until, err := s.h.Peer.Renew(s.ctx, plainQueue, second[0].Token)
	if err != nil || !until.After(second[0].LockedUntil.Add(-time.Millisecond)) {
		s.t.Fatalf("renew: %v, %v", until, err)
	}
	r, err := s.h.Broker.Settle(s.ctx, plainQueue, second[0].Token, commit(second[0].Unit)) // whoever knows the token may settle
	s.equal("settled", []any{r.Consequence, err}, []any{broker.Committed, nil})
	_, err = s.h.Peer.Settle(s.ctx, plainQueue, second[0].Token, commit(second[0].Unit))
	s.wantErr("settle twice", err, broker.ErrLockLost)
}

func fullStore(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 1 })
	s.send(plainQueue, "m")
	w := s.open(plainQueue, 1)
	u := w.one("m")
	s.h.Full(true)
	_, err := s.h.Broker.Send(s.ctx, plainQueue, message("refused"))
	s.wantErr("send to a full store", err, broker.ErrQuota)
	w.want(broker.DeadLettered, failure(u))
	s.h.Full(false)
	s.equal("dead letters", len(s.dead(plainQueue)), 1)
	s.equal("left", s.queue(plainQueue).Counts.Ready, 0)
	s.snapshot(plainQueue)
	s.send(plainQueue, "again")
	s.equal("goes on", s.drainAll(plainQueue), "[again]")
}

func starvedPool(s *stage) {
	b := s.h.StarvePool(2)
	s.send(plainQueue, "m")
	w := s.openAt(b, plainQueue, 1)
	u := w.one("m")
	for range 8 {
		go func() {
			_, _ = b.Receive(s.ctx, sinkQueue, broker.ReceiveOptions{Max: 1, Top: 1, Wait: 20 * time.Second})
		}()
	}
	s.until("receivers wait", func() bool { return s.snapshot(sinkQueue).Asleep })
	began := time.Now()
	w.commit(u)
	if took := time.Since(began); took > 100*time.Millisecond {
		s.t.Fatalf("the settlement took %v while receivers wait", took)
	}
}
