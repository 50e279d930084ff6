package brokertest

import (
	"time"

	"parley/broker"
)

// clockRules are the rules about the one clock, the store's: what repeats goes from the planned instant, and the clock may be set.
var clockRules = []test{
	{"TestClock_an_interval_goes_from_the_planned_instant", func(s *stage) {
		s.schedule("@every 5s")
		var want []string
		for i := range 6 {
			s.advance(5300 * time.Millisecond) // late each time, and later each time
			want = append(want, s.planned(time.Duration(i+1)*5*time.Second))
		}
		s.equal("runs", s.runs(), want)
	}},
	{"TestClock_every_interval_is_exact", func(s *stage) {
		for _, every := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second} {
			began := s.snapshot(workQueue).Now
			s.schedule("@every " + every.String())
			c := s.begin()
			s.cron(c, "@every "+every.String(), "")
			for i := 1; i <= 4; i++ {
				at := began.Add(time.Duration(i) * every)
				s.equal("the timer is armed for", s.endpoint(c).TimerDue.UnixMilli(), at.UnixMilli())
				s.advance(every - time.Millisecond)
				s.equal("early", []any{s.runs(), s.drainAll(homeQueue)}, "[[] []]")
				s.advance(time.Millisecond)
				s.equal("run", s.runs(), []string{s.plannedAt(at)})
				s.equal("timer", s.drainAll(homeQueue), "[Timer]")
				s.advance(300 * time.Millisecond) // whoever keeps house is late
				s.h.Advance(-300 * time.Millisecond)
			}
			s.end(c, 0)
			s.keep()
		}
	}},
	{"TestClock_what_is_overdue_runs_once_and_is_planned_from_then", func(s *stage) {
		s.schedule("@every 5s")
		c := s.begin()
		s.cron(c, "@every 5s", "")
		s.advance(33 * time.Second) // a stop of everything, or a step forward
		s.equal("runs", s.runs(), []string{s.planned(5 * time.Second)})
		s.equal("timers", s.drainAll(homeQueue), "[Timer]")
		s.advance(4999 * time.Millisecond)
		s.equal("early", []any{s.runs(), s.drainAll(homeQueue)}, "[[] []]")
		s.advance(time.Millisecond)
		s.equal("the next run", s.runs(), []string{s.planned(38 * time.Second)})
		s.equal("the next timer", s.drainAll(homeQueue), "[Timer]")
	}},
	{"TestClock_set_back_an_interval_is_planned_again", func(s *stage) { clockSetBack(s, "@every 5s", 5*time.Second) }},
	{"TestClock_set_back_a_calendar_is_planned_again", func(s *stage) { clockSetBack(s, "*/15 * * * * *", 15*time.Second) }},
	{"TestClock_set_back_before_who_fired_it_arms_it_again", func(s *stage) {
		faultyCalls(s, func(k int, keep func()) {
			s.schedule("*/15 * * * * *")
			c := s.begin()
			s.cron(c, "*/15 * * * * *", "")
			s.h.Advance(15 * time.Second)
			s.h.LoseCall(k, 1000)
			keep()
			s.h.Advance(-2 * time.Hour)
			s.peerKeep()
			s.runs()
			s.drainAll(homeQueue)
			s.equal("armed", s.endpoint(c).TimerDue.Sub(s.snapshot(homeQueue).Now) <= 15*time.Second, true)
			s.h.Advance(15 * time.Second)
			s.peerKeep()
			s.equal("runs", len(s.runs()), 1)
			s.equal("timers", s.drainAll(homeQueue), "[Timer]")
			s.end(c, 0)
			s.h.Advance(45 * time.Second) // past every lease, and to a whole minute
			s.peerKeep()
			s.runs()
		})
	}},
	{"TestClock_set_back_a_refused_transmission_is_tried_again", func(s *stage) {
		c := s.begin()
		s.status(workQueue, broker.QueueOff)
		s.say(c, "m")
		before := s.pauses(6)
		s.h.Advance(-2 * time.Hour)
		s.keepFor(5 * time.Second)
		left := s.queue(homeQueue).Transmit[0].NextTry.Sub(s.snapshot(homeQueue).Now)
		s.equal("next try", []any{left <= 64*time.Second, len(before)}, "[true 6]")
	}},
}

// clockSetBack sets the clock back between two runs, in steps small and large: the next run is the next valid one, once, and then all goes on
// as ever. An instant may run twice then, under one message id.
func clockSetBack(s *stage, spec string, every time.Duration) {
	s.schedule(spec)
	c := s.begin()
	s.cron(c, spec, "")
	for _, back := range []time.Duration{3 * time.Second, 90 * time.Second, 300 * time.Second, 2 * time.Hour} {
		s.advance(every)
		s.equal("runs before", len(s.runs()), 1)
		s.equal("timers before", s.drainAll(homeQueue), "[Timer]")
		s.h.Advance(-back)
		s.keep()
		now := s.snapshot(workQueue).Now
		due := s.endpoint(c).TimerDue
		s.equal("the next valid instant", due.After(now) && due.Sub(now) <= every, true)
		s.advance(due.Sub(now) - time.Millisecond)
		s.equal("early", []any{s.runs(), s.drainAll(homeQueue)}, "[[] []]")
		s.advance(time.Millisecond)
		s.equal("run", s.runs(), []string{s.plannedAt(due)})
		s.equal("timer", s.drainAll(homeQueue), "[Timer]")
		s.h.Advance(time.Minute - due.Sub(due.Truncate(time.Minute))) // to a whole minute
		s.keep()
		s.runs()
		s.drainAll(homeQueue)
	}
}
