package brokertest

import (
	"fmt"
	"sync"
	"time"

	"parley/broker"
)

// dialogCases are the field cases about dialogs, timers and schedules. The first numbers are those of the cases.
var dialogCases = []test{
	{"TestCase26_conversations_that_are_never_ended", neverEnded},
	{"TestCase27_timers", timerCase},
	{"TestCase28_a_clock_that_goes_forward", clockForward},
	{"TestCase32_several_hosts_run_one_schedule", severalHosts},
	{"TestCaseS8_the_run_after_one_that_failed", func(s *stage) {
		s.schedule("* * * * * *")
		w := s.open(workQueue, 1)
		for i := range 4 {
			s.advance(time.Second)
			u := w.receive().Units[0]
			s.equal("run", u.Messages[0].MessageID, s.planned(time.Duration(i+1)*time.Second))
			if i == 0 {
				st := failure(u)
				st.FailReason, st.FailText = broker.ReasonTrap, "panic"
				w.want(broker.RolledBack, st)
				u = w.receive().Units[0]
			}
			w.commit(u)
			w.none()
		}
	}},
}

// endpoints counts the endpoints of queue in a state, or in any.
func (s *stage) endpoints(queue, state string) int {
	s.t.Helper()
	n := 0
	err := s.h.Broker.Endpoints(s.ctx, queue, state, func(broker.Endpoint) bool { n++; return true })
	if err != nil {
		s.t.Fatalf("endpoints of %s: %v", queue, err)
	}
	return n
}

func timerCase(s *stage) {
	c := s.begin()
	s.timer(c, time.Minute) // (a)
	s.advance(5 * time.Second)
	s.timer(c, 10*time.Second)
	s.advance(9999 * time.Millisecond)
	s.equal("a: early", s.drainAll(homeQueue), "[]")
	s.advance(time.Millisecond)
	s.equal("a: at 15 s", s.drainAll(homeQueue), "[Timer]")
	s.advance(2 * time.Minute)
	s.equal("a: at 60 s", s.drainAll(homeQueue), "[]")

	d := s.begin() // (b)
	s.timer(d, time.Second)
	s.advance(500 * time.Millisecond)
	s.end(d, 0)
	s.advance(time.Minute)
	s.equal("b", s.drainAll(homeQueue), "[]")

	i, h := s.timerScene() // (c)
	s.say(i, "app")
	s.end(i, 12)
	s.advance(time.Second)
	w := s.open(workQueue, 1)
	w.commit(w.one("Timer"))
	w.commit(w.one("Error"))
	_, err := s.h.Broker.SendOn(s.ctx, h, message("x"))
	s.wantErr("c: send after the Error", err, broker.ErrConversationEnded)
	w.commit(w.one("app"))
	w.close()

	s.timer(c, 5*time.Second) // (d)
	s.advance(3 * time.Second)
	s.h.Advance(27 * time.Second) // all hosts are down
	for range 3 {
		s.keep()
		s.peerKeep()
	}
	s.equal("d", s.drainAll(homeQueue), "[Timer]")

	for _, after := range []time.Duration{-time.Second, 2147483648 * time.Second} { // (e)
		s.wantErr("e", s.h.Broker.Timer(s.ctx, c, after, "", "", 0), broker.ErrTimerValue)
	}
	s.timer(c, 0) // cancels (decisions, Timers)
}

// clockForward runs a daily schedule over the night whose hour from two to three does not exist.
func clockForward(s *stage) {
	s.apply(broker.Definitions{Schedules: []broker.Schedule{{Name: "tick", Cron: "30 2 * * *", Zone: "America/New_York", To: workSvc}}})
	for range 9 * 24 {
		s.h.Advance(time.Hour)
		s.peerKeep()
	}
	var want []string
	for day := 2; day <= 10; day++ {
		at := time.Date(2026, 3, day, 7, 30, 0, 0, time.UTC)
		switch {
		case day == 8:
			at = time.Date(2026, 3, day, 7, 0, 0, 0, time.UTC) // the first instant after the gap
		case day > 8:
			at = time.Date(2026, 3, day, 6, 30, 0, 0, time.UTC)
		}
		want = append(want, fmt.Sprintf("tick@%d", at.UnixMilli()))
	}
	s.equal("runs", s.runs(), want)
}

func severalHosts(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 1 })
	s.schedule("*/15 * * * * *")
	s.h.Advance(500 * time.Millisecond)
	hosts := []Broker{s.h.Broker, s.h.Peer, s.h.Peer}
	minute := func() {
		for range 60 {
			s.h.Advance(time.Second)
			var wg sync.WaitGroup
			for _, h := range hosts {
				wg.Go(func() {
					if _, err := h.Keep(s.ctx); err != nil {
						s.t.Errorf("keep: %v", err)
					}
				})
			}
			wg.Wait()
		}
	}
	minute()
	w := s.open(workQueue, 1)
	var got []string
	for i := range 4 {
		u := w.receive().Units[0]
		got = append(got, u.Messages[0].MessageID)
		if i == 1 { // tick 2 dies
			w.want(broker.DeadLettered, failure(u))
			continue
		}
		w.commit(u)
	}
	w.none()
	w.close()
	hosts = hosts[1:] // one is killed
	minute()
	got = append(got, s.runs()...)
	var want []string
	for i := range 8 {
		want = append(want, s.planned(time.Duration(i+1)*15*time.Second))
	}
	s.equal("runs of two minutes", got, want)
	s.equal("dead letters", len(s.dead(workQueue)), 1)
}
