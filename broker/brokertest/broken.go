package brokertest

import (
	"fmt"
	"slices"
	"time"

	"parley/broker"
)

// brokenFirst: numbers that our counter has not reached yet are written by others; it never gives them to a message then.
func brokenFirst(s *stage) {
	kinds := brokenKinds("00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
	for i, k := range kinds {
		s.write(plainQueue, "s:5", fmt.Sprintf("%d-0", i+1), k.fields...)
	}
	w := s.open(plainQueue, 2)
	seqs := s.send(plainQueue, "a", "b")
	s.equal("handled", w.drain(), "[a b]")
	if seqs[1] != seqs[0]+1 || seqs[0] <= int64(len(kinds)) {
		s.t.Errorf("the numbers of our own are %v", seqs)
	}
	s.brokenAre(plainQueue, kinds)
	s.send(plainQueue, "c")
	s.equal("handled", s.drainAll(plainQueue), "[c]")
}

// brokenInHoles: messages that wait for their time, timers and other priorities take numbers that the stream does not get. What others
// wrote there before is not ours although the counter passes it.
func brokenInHoles(s *stage) {
	perfect := brokenKind{"perfect", []string{header(), "x"}}
	s.send(plainQueue, "a")
	s.write(plainQueue, "s:5", "3-0", perfect.fields...)
	later := message("later")
	later.Delay = time.Minute
	for range 5 {
		if _, err := s.h.Broker.Send(s.ctx, plainQueue, later); err != nil {
			s.t.Fatal(err)
		}
	}
	s.send(plainQueue, "b")
	s.equal("handled", s.drainAll(plainQueue), "[a b]")
	s.write(plainQueue, "s:5", "*", perfect.fields...)
	s.advance(2 * time.Minute)
	s.equal("handled", s.drainAll(plainQueue), "[later later later later later]")
	s.brokenAre(plainQueue, []brokenKind{perfect, perfect})

	h := s.begin()
	s.say(h, "m0")
	target := targetOf(s)
	next := brokenKind{"next", []string{header(0, target, 2, "1", 6, ""), "x"}}
	s.write(workQueue, "s:5", "4-0", next.fields...)
	for range 4 { // each takes a number of the lane sys
		if err := s.h.Broker.Timer(s.ctx, target, time.Second, "", "", 0); err != nil {
			s.t.Fatal(err)
		}
		s.advance(2 * time.Second)
		s.equal("handled first", s.open(workQueue, 1).drain()[0], "Timer")
	}
	s.say(h, "m1")
	s.equal("handled", s.open(workQueue, 1).drain(), "[m1]")
	s.brokenAre(workQueue, []brokenKind{next})
}

// brokenFarAway: an id near the end of all ids leaves no room behind it.
func brokenFarAway(s *stage) {
	var kinds []brokenKind
	for i, id := range []string{"9007199254740993-0", "9223372036854775807-5", "18446744073709551615-18446744073709551615"} {
		if !s.h.Real && i > 0 {
			break // the embedded server cannot take a stream's last id back
		}
		k := brokenKind{id, []string{header(6, fmt.Sprint("far", i)), "x"}}
		if !s.h.Real {
			k.fields[0], id = header(6, "near"), "900719925474-0"
		}
		kinds = append(kinds, k)
		s.write(plainQueue, "s:5", id, k.fields...)
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		if i == 1 { // read before anything is sent
			s.open(plainQueue, 1).none()
		}
		s.send(plainQueue, a, b)
		s.equal("handled", s.drainAll(plainQueue), []string{a, b})
	}
	s.brokenAre(plainQueue, kinds)
}

// brokenTogether: entries of one millisecond have one number in their ids.
func brokenTogether(s *stage) {
	var kinds []brokenKind
	for i := range 20 {
		k := brokenKind{fmt.Sprint(i), []string{"n", fmt.Sprint(i)}}
		kinds = append(kinds, k)
		s.write(plainQueue, "s:5", fmt.Sprintf("1796067856507-%d", i), k.fields...)
	}
	s.open(plainQueue, 4).none()
	s.brokenAre(plainQueue, kinds)
}

// brokenMany: more than one script moves at a time, in front of and behind messages of ours.
func brokenMany(s *stage) {
	var kinds []brokenKind
	var want []string
	write := func(n int) {
		for range n {
			k := brokenKind{"many", []string{header(6, fmt.Sprint("f", len(kinds))), "x"}}
			kinds = append(kinds, k)
			s.write(plainQueue, "s:5", "*", k.fields...)
		}
		id := fmt.Sprint("m", len(want))
		want = append(want, id)
		s.send(plainQueue, id)
	}
	write(250)
	write(1)
	write(430)
	got := s.drainAll(plainQueue) // plain messages that came back may be overtaken
	slices.Sort(got)
	s.equal("handled", got, want)
	s.brokenAre(plainQueue, kinds)
}

func brokenPurged(s *stage) {
	s.send(plainQueue, "a")
	s.write(plainQueue, "s:5", "*", header(), "x")
	s.write(plainQueue, "s:5", "*", "foreign", "field")
	if _, err := s.h.Broker.Purge(s.ctx, plainQueue); err != nil {
		s.t.Fatal(err)
	}
	s.brokenAre(plainQueue, nil)
	s.send(plainQueue, "b")
	s.equal("handled", s.drainAll(plainQueue), "[b]")
}

// brokenRebuilt: a stream that lost its group is read again from its start, and what others wrote is none of it.
func brokenRebuilt(s *stage) {
	h := s.begin()
	s.say(h, "m0")
	target := targetOf(s)
	kinds := []brokenKind{
		{"a timer", []string{header(0, target, 5, "T", 6, "", 7, broker.TypeDialogTimer), "x"}},
		{"a field", []string{"foreign", "field"}},
		{"a message", []string{header(0, target, 2, "1", 6, ""), "x"}},
	}
	s.write(workQueue, "s:sys", "*", kinds[0].fields...)
	s.write(workQueue, "s:sys", "*", kinds[1].fields...)
	s.write(workQueue, "s:5", "*", kinds[2].fields...)
	s.h.LoseGroup(workQueue)
	if rep, err := s.open(workQueue, 1).turn(broker.TurnRequest{Free: []int{0}, Empty: 1}); err != nil || len(rep.Units) > 0 {
		s.t.Fatalf("the turn that finds the loss: %v, %v", names(rep.Units), err)
	}
	s.equal("handled", s.open(workQueue, 1).drain(), "[m0]")
	s.brokenAre(workQueue, kinds)
}

func brokenResubmit(s *stage) {
	s.write(plainQueue, "s:5", "*", "foo", "bar")
	s.sweep(plainQueue)
	d := s.dead(plainQueue)
	_, err := s.h.Broker.Resubmit(s.ctx, plainQueue, d[0].SequenceNumber)
	s.wantErr("resubmit", err, broker.ErrResubmitMalformed)
	s.equal("exit code", broker.ExitCode(err), broker.ExitConflict)
	s.brokenAre(plainQueue, []brokenKind{{"foo", []string{"foo", "bar"}}})

	// The reason alone is any handler's: its dead letter is a message.
	s.send(sinkQueue, "mine")
	w := s.open(sinkQueue, 1)
	u := w.one("mine")
	w.want(broker.DeadLettered, broker.Settlement{Unit: u, Verdict: broker.VerdictDeadLetter, Reason: broker.ReasonMalformedEnvelope})
	d = s.dead(sinkQueue)
	if string(d[0].Body) != "mine" || d[0].Dead.Raw != nil {
		s.t.Errorf("a handler's own dead letter: %+v", d[0])
	}
	if _, err := s.h.Broker.Resubmit(s.ctx, sinkQueue, d[0].SequenceNumber); err != nil {
		s.t.Errorf("a handler's own dead letter: %v", err)
	}
	s.equal("handled", s.drainAll(sinkQueue), "[mine]")
}

// counterWrong: whatever the counter of waiting messages says, a sweep finds what waits.
func counterWrong(s *stage) {
	s.send(plainQueue, "a")
	s.h.SetCounter(plainQueue, "ready", -1)
	work, err := s.h.Broker.Sweep(s.ctx, []string{plainQueue, sinkQueue})
	if err != nil || len(work) != 1 {
		s.t.Fatalf("work: %v, %v", work, err)
	}
	w := s.open(plainQueue, 1)
	w.fail(w.one("a"))
	w.close()
	s.h.SetCounter(plainQueue, "ready", 0)
	work, err = s.h.Broker.Sweep(s.ctx, []string{plainQueue})
	if err != nil || len(work) != 1 {
		s.t.Fatalf("work that waits again: %v, %v", work, err)
	}
	s.equal("handled", s.drainAll(plainQueue), "[a]")
}
