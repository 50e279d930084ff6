package brokertest

import (
	"fmt"

	"parley/broker"
)

// activationRules are the broker's part of activation (AC): what a host may start, and how much there is to do for it. The host's
// part is tested in package host.
var activationRules = []test{
	{"TestT_AC_3_a_thousand_messages_of_one_group_keep_one_reader_working", oneGroupOneReader},
	{"TestT_AC_4_readers_of_all_hosts_share_the_limit", sharedLimit},
}

// oneGroupOneReader lets five readers of two hosts at a thousand messages of one group.
func oneGroupOneReader(s *stage) {
	const n = 1000
	s.sendSession(plainQueue, "g", numbered("m", n)...)
	var readers []*worker
	for i := range 5 {
		readers = append(readers, s.openAt([]Broker{s.h.Broker, s.h.Peer}[i%2], plainQueue, 2))
	}
	handled := 0
	for round := range n / 20 { // each of them is the one that works, in turn
		w := readers[round%len(readers)]
		u := w.one(fmt.Sprint("m", handled))
		for _, o := range readers {
			o.none()
		}
		for range 19 {
			handled++
			u = w.settleTake(commit(u)).Units[0]
			s.equal("next", name(u.Messages[0]), fmt.Sprint("m", handled))
		}
		handled++
		w.commit(u)
	}
	for _, w := range readers {
		w.none()
	}
}

// sharedLimit opens readers at two hosts under a limit of seven slots.
func sharedLimit(s *stage) {
	open := func(b Broker, want int) broker.Reader {
		s.t.Helper()
		r, err := b.OpenReader(s.ctx, plainQueue, broker.ReaderOptions{Slots: 4, Limit: 7})
		if err != nil {
			s.t.Fatal(err)
		}
		got := 0
		if r != nil {
			got = r.Slots()
		}
		s.equal("slots granted of 4", got, want)
		return r
	}
	for _, session := range numbered("g", 40) {
		s.sendSession(plainQueue, session, "m")
	}
	a, b := open(s.h.Broker, 4), open(s.h.Peer, 3)
	open(s.h.Broker, 0)
	open(s.h.Peer, 0)
	units := 0
	for _, r := range []broker.Reader{a, b} {
		w := &worker{s: s, r: r, top: 1, slots: make([][]*broker.Unit, r.Slots())}
		units += len(w.receive().Units)
	}
	s.equal("units at once", units, 7)
	if err := a.Close(s.ctx); err != nil {
		s.t.Fatal(err)
	}
	a = open(s.h.Peer, 4)
	s.expire() // both hosts are killed
	open(s.h.Broker, 4)
	open(s.h.Peer, 3)
	_, err := a.Turn(s.ctx, broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1})
	s.wantErr(fmt.Sprint("a turn of ", a.Name(), ", which was reaped"), err, broker.ErrLockLost)
}
