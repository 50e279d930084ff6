package brokertest

import (
	"time"

	"parley/broker"
)

// holes replays the holes that the first sketch of the reader protocol had, each with its shortest trace and the outcome
// that is right. The numbers are those of the protocol's documentation.
var holes = []test{
	{"TestH1_a_crash_is_counted", holeCrashCounted},
	{"TestH1b_a_woken_reader_starts_nothing", holeWokenReader},
	{"TestH2_a_name_is_one_incarnation", holeNames},
	{"TestH3_a_lost_reply_loses_nothing", holeLostReply},
	{"TestH3_a_lost_reply_of_a_handover", holeLostHandOver},
	{"TestH5_a_group_is_not_given_twice", holeGivenTwice},
	{"TestH6_no_handover_while_off", holeHandOverOff},
	{"TestH7_nothing_overtakes_a_parked_message", holeParked},
	{"TestH10_counts_go_with_the_message", holeCounts},
	{"TestH11_a_late_commit_is_fenced", holeLateCommit},
	{"TestH11_a_reaped_reader_commits_nothing", holeReapedCommit},
}

func holeCrashCounted(s *stage) {
	s.send(workQueue, "m")
	for death := 1; death <= 5; death++ {
		w := s.open(workQueue, 1)
		u := w.one("m") // announced, so it counts as started; then the host is killed
		s.equal("count at hand-out", u.Messages[0].PoisonCount, death-1)
		rep := s.expire()
		s.equal("deaths reported", len(rep.DeadReaders), 1)
		s.equal("stored count", s.stored(workQueue, "m").PoisonCount, death)
		s.equal("status after a death", s.queue(workQueue).Status == broker.QueueOff, death == 5)
	}
	s.equal("events", len(s.events(workQueue, "queue_disabled")), 1)
	_, err := s.h.Broker.OpenReader(s.ctx, workQueue, broker.ReaderOptions{Slots: 1, Limit: 1})
	s.wantErr("open a reader on a queue that is off", err, broker.ErrQueueDisabled)
}

func holeWokenReader(s *stage) {
	s.send(workQueue, "m0", "m1")
	w := s.open(workQueue, 1)
	units := w.window(0, 2)
	s.equal("window", names(units), "[m0 m1]")
	rep := s.expire()
	s.equal("deaths reported", len(rep.DeadReaders), 2)
	for _, id := range []string{"m0", "m1"} {
		m := s.stored(workQueue, id)
		s.equal("counts of "+id, []int{m.PoisonCount, m.DeliveryCount, m.Uncertain}, "[0 0 1]")
	}
	s.wantErr("renew by the woken reader", w.r.Renew(s.ctx), broker.ErrLockLost)
	_, err := w.turn(broker.TurnRequest{Settle: []broker.Settlement{commit(units[0])}})
	s.wantErr("commit by the woken reader", err, broker.ErrLockLost)

	w = s.open(workQueue, 1)
	s.equal("an uncertain unit runs alone", len(w.window(0, 2)), 1)
	if more := w.window(0, 1); len(more) != 0 {
		s.t.Fatalf("%v was put behind an uncertain unit", names(more))
	}
	s.expire()
	counts := []int{}
	for _, id := range []string{"m0", "m1"} {
		counts = append(counts, s.stored(workQueue, id).PoisonCount)
	}
	s.equal("an uncertain death becomes certain with the next one", counts, "[2 0]")
}

func holeNames(s *stage) {
	seen := map[string]bool{}
	s.send(workQueue, "m")
	s.open(workQueue, 1).one("m") // killed
	var alive *worker
	for i := range 20 {
		b := s.h.Broker
		if i%2 == 1 {
			b = s.h.Peer
		}
		w := s.openAt(b, workQueue, 1)
		if seen[w.r.Name()] {
			s.t.Fatalf("the name %q was given twice", w.r.Name())
		}
		seen[w.r.Name()] = true
		alive = w
	}
	s.h.Advance(broker.DefaultLease * 6 / 10)
	alive.none()
	s.h.Advance(broker.DefaultLease * 6 / 10)
	s.keep()
	alive.one("m")
}

func holeLostReply(s *stage) {
	for lost := 1; lost <= 3; lost++ { // also the reply of the repair, and of its repetition
		s.send(workQueue, "m")
		w := s.open(workQueue, 1)
		s.h.LoseReply(0, lost)
		u := w.one("m")
		s.equal("counts after a lost reply", []int{u.Messages[0].PoisonCount, u.Messages[0].DeliveryCount}, "[0 0]")
		s.snapshot(workQueue)
		s.h.LoseReply(0, lost)
		w.commit(u, broker.Effect{Kind: broker.EffectSendTo, Queue: sinkQueue, Message: message("out")})
		s.equal("sent on", len(s.snapshot(sinkQueue).Messages), lost)
		s.equal("left", len(s.snapshot(workQueue).Messages), 0)
		w.close()
	}
}

func holeLostHandOver(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1", "m2")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	s.h.LoseReply(0, 1)
	rep := w.settleTake(commit(u))
	s.equal("consequence", rep.Results[0].Consequence, broker.Committed)
	s.equal("handed over", names(rep.Units), "[m1]")
	s.h.LoseCall(0, 1)
	rep = w.settleTake(commit(rep.Units[0]))
	s.equal("consequence of a call that was lost", rep.Results[0].Consequence, broker.Committed)
	s.equal("handed over", names(rep.Units), "[m2]")
	s.snapshot(workQueue)
	w.commit(rep.Units[0])
}

func holeGivenTwice(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 2)
	u := w.one("m0")
	w.none()
	s.sendSession(workQueue, "a", "m2")
	w.none()
	w.fail(u)
	s.equal("order after the rollback", w.drain(), "[m0 m1 m2]")
}

func holeHandOverOff(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	s.status(workQueue, broker.QueueOff)
	rep := w.settleTake(commit(u)) // it began before, so it may commit
	s.equal("consequence", rep.Results[0].Consequence, broker.Committed)
	s.equal("handed out while off", names(rep.Units), "[]")
	s.equal("told", rep.Off, true)
	s.equal("lock", s.snapshot(workQueue).Locks["s:a"].Holder, "")
	s.status(workQueue, broker.QueueActive)
	w.one("m1")
}

func holeParked(s *stage) {
	s.sendSession(workQueue, "a", "m0", "m1")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	w.want(broker.RolledBack, pause(u, 2*time.Second))
	w.none()
	s.sendSession(workQueue, "a", "m2")
	w.none()
	s.equal("lock", s.snapshot(workQueue).Locks["s:a"], broker.Lock{Parked: true})
	s.advance(1999 * time.Millisecond)
	w.none()
	s.advance(2 * time.Millisecond)
	s.equal("order after the pause", w.drain(), "[m0 m1 m2]")
}

func holeCounts(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	w := s.open(workQueue, 1)
	u := w.one("m0")
	w.fail(u)
	s.equal("records", s.snapshot(workQueue).Attempts, 1)
	s.end(u.Messages[0].Conversation, 0)
	w.none()
	s.equal("records after END", s.snapshot(workQueue).Attempts, 0)

	s.send(plainQueue, "d", "p")
	v := s.open(plainQueue, 2)
	for _, u := range v.receive().Units {
		v.fail(u)
	}
	s.equal("records", s.snapshot(plainQueue).Attempts, 2)
	for _, u := range v.receive().Units {
		if name(u.Messages[0]) == "d" {
			v.want(broker.DeadLettered, broker.Settlement{Unit: u, Verdict: broker.VerdictDeadLetter, Reason: "Bad"})
		} else {
			v.want(broker.Released, release(u))
		}
	}
	s.equal("records after the dead letter", s.snapshot(plainQueue).Attempts, 1)
	n, err := s.h.Broker.Purge(s.ctx, plainQueue)
	s.equal("purged", []any{n, err}, []any{1, nil})
	s.equal("records after the purge", s.snapshot(plainQueue).Attempts, 0)
}

func holeLateCommit(s *stage) {
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	u := w.one("m")
	deliver := s.h.HoldCall(0)
	w.commit(u, broker.Effect{Kind: broker.EffectSendTo, Queue: sinkQueue, Message: message("out")})
	s.equal("the first call was held", deliver(), true)
	s.equal("copies", len(s.snapshot(sinkQueue).Messages), 1)
	s.equal("left", len(s.snapshot(workQueue).Messages), 0)
}

func holeReapedCommit(s *stage) {
	s.send(workQueue, "m")
	w := s.open(workQueue, 1)
	u := w.one("m")
	s.h.Advance(broker.DefaultLease + time.Second) // expired is lost, even before anybody reaped it
	_, err := w.turn(broker.TurnRequest{Settle: []broker.Settlement{
		commit(u, broker.Effect{Kind: broker.EffectSendTo, Queue: sinkQueue, Message: message("out")}),
	}})
	s.wantErr("late commit", err, broker.ErrLockLost)
	s.keep()
	v := s.open(workQueue, 1)
	s.equal("the lost lease was counted", v.one("m").Messages[0].PoisonCount, 1)
	s.equal("copies", len(s.snapshot(sinkQueue).Messages), 0)
}
