package brokertest

import (
	"sync"
	"time"

	"parley/broker"
)

// timerRules are the rules about conversation timers (TM).
var timerRules = []test{
	{"TestT_TM_1_fires_once_and_only_on_its_own_side", firesOnce},
	{"TestT_TM_2_arming_again_replaces", func(s *stage) {
		c := s.begin()
		s.timer(c, time.Second)
		s.advance(500 * time.Millisecond)
		s.timer(c, 5*time.Second)
		s.advance(4999 * time.Millisecond)
		s.equal("early", s.drainAll(homeQueue), "[]")
		s.advance(time.Millisecond)
		s.equal("in time", s.drainAll(homeQueue), "[Timer]")
		s.advance(time.Minute)
		s.equal("afterwards", s.drainAll(homeQueue), "[]")
	}},
	{"TestT_TM_3_each_side_has_its_own", bothSides},
	{"TestT_TM_4_overdue_after_downtime_fires_once_at_start", overdueTimer},
	{"TestT_TM_5_a_failed_unit_keeps_the_old_timer", timerRolledBack},
	{"TestT_TM_6_END_takes_the_timer_with_it", endedTimer},
	{"TestT_TM_7_zero_cancels", cancelTimer},
	{"TestT_TM_8_never_early", neverEarly},
	{"TestT_TM_9_before_anything_was_sent", func(s *stage) {
		c := s.begin()
		s.timer(c, time.Second)
		s.advance(time.Second)
		s.equal("received", s.drainAll(homeQueue), "[Timer]")
		s.equal("state", s.endpoint(c).State, broker.StateStartedOutbound)
	}},
	{"TestT_TM_10_two_hosts_fire_it_once", twoHostsFireOnce},
	{"TestTM_6_and_7_states_that_allow_a_timer", timerStates},
	{"TestTM_11_the_far_sides_END_does_not_cancel", func(s *stage) {
		for _, code := range []int{0, 12} {
			c, h := s.timerScene() // armed at the target, for a second
			s.end(c, code)
			s.advance(time.Second)
			s.equal("own timer", s.drainAll(workQueue), map[int]string{0: "[Timer EndDialog]", 12: "[Timer Error]"}[code])
			s.timer(h, time.Second)
			s.advance(time.Second)
			s.equal("armed afterwards", s.drainAll(workQueue), "[Timer]")
			s.end(h, 0)
		}
	}},
	{"TestTM_12_due_while_the_queue_is_off", func(s *stage) {
		s.timerScene()
		s.status(workQueue, broker.QueueOff)
		s.advance(time.Minute)
		s.equal("waiting while off", s.peek(workQueue), "[]")
		s.status(workQueue, broker.QueueActive)
		s.keep()
		s.equal("once it is on", s.drainAll(workQueue), "[Timer]")
	}},
	{"TestT_OR_6_a_timer_overtakes_no_other_conversation_of_its_group", func(s *stage) {
		_, b := s.sharedGroup()
		w := s.open(homeQueue, 1)
		w.fileAll()
		s.timer(b, time.Second)
		s.advance(time.Second)
		s.equal("order", w.drain(), "[a0 Timer b0 a1 b1]")
	}},
	{"TestSM_11_two_unreceived_timers_are_one", func(s *stage) {
		c := s.begin()
		for range 2 {
			s.timer(c, time.Second)
			s.advance(time.Second)
		}
		s.equal("received", s.drainAll(homeQueue), "[Timer]")
		s.timer(c, time.Second)
		s.advance(time.Second)
		s.equal("one more after it was received", s.drainAll(homeQueue), "[Timer]")
	}},
	{"TestTM_a_cron_timer_repeats_until_it_is_cancelled", cronRepeats},
	{"TestTM_a_cron_timer_survives_the_death_of_who_arms_it_again", cronSurvives},
	{"TestTM_a_cron_timer_ends_with_its_lifetime", cronLifetime},
	{"TestTM_a_cron_timer_makes_up_for_nothing", func(s *stage) {
		c := s.begin()
		s.cron(c, "*/10 * * * * *", "")
		s.advance(95 * time.Second)
		s.equal("nine were missed", s.drainAll(homeQueue), "[Timer]")
		s.equal("next", s.endpoint(c).TimerDue.Second(), 40)
	}},
	{"TestTM_bad_values_are_refused_and_change_nothing", badTimers},
}

// timer arms the timer of handle, or cancels it with 0.
func (s *stage) timer(handle string, after time.Duration) {
	s.t.Helper()
	if err := s.h.Broker.Timer(s.ctx, handle, after, "", "", 0); err != nil {
		s.t.Fatalf("arm %s for %v: %v", handle, after, err)
	}
}

// cron arms the repeating timer of handle.
func (s *stage) cron(handle, spec, zone string) {
	s.t.Helper()
	if err := s.h.Broker.Timer(s.ctx, handle, 0, spec, zone, 0); err != nil {
		s.t.Fatalf("arm %s by %q: %v", handle, spec, err)
	}
}

func firesOnce(s *stage) {
	_, h := s.timerScene()
	s.advance(time.Second)
	w := s.open(workQueue, 1)
	u := w.one("Timer")
	m := u.Messages[0]
	s.equal("message", []any{m.Type, len(m.Body), m.Conversation, m.Validation}, []any{broker.TypeDialogTimer, 0, h, "E"})
	w.commit(u)
	w.close()
	s.equal("due", s.endpoint(h).TimerDue.IsZero(), true)
	for range 3 {
		s.advance(time.Minute)
		s.equal("again", s.drainAll(workQueue), "[]")
	}
	s.equal("far side", s.drainAll(homeQueue), "[]")
}

func bothSides(s *stage) {
	c, h := s.timerScene()
	s.timer(c, 2*time.Second)
	s.advance(time.Second)
	s.equal("target", s.drainAll(workQueue), "[Timer]")
	s.equal("initiator", s.drainAll(homeQueue), "[]")
	s.advance(time.Second)
	s.equal("initiator", s.drainAll(homeQueue), "[Timer]")
	s.timer(c, time.Second)
	s.timer(h, time.Second)
	s.timer(c, 0)
	s.advance(time.Second)
	s.equal("target, though the initiator cancelled its own", s.drainAll(workQueue), "[Timer]")
	s.equal("initiator", s.drainAll(homeQueue), "[]")
}

// overdueTimer lets the only client that knows of the timer fall silent: another host finds it.
func overdueTimer(s *stage) {
	c := s.begin()
	s.timer(c, 5*time.Second)
	s.h.Advance(30 * time.Second)
	for range 2 {
		if _, err := s.h.Peer.Keep(s.ctx); err != nil {
			s.t.Fatal(err)
		}
	}
	s.equal("received", s.drainAll(homeQueue), "[Timer]")
	s.advance(time.Minute)
	s.equal("again", s.drainAll(homeQueue), "[]")
}

// timerRolledBack fails units that armed or cancelled in each way to fail: an effect is refused at the commit, or the handler says so,
// whatever it had staged.
func timerRolledBack(s *stage) {
	c, h := s.timerScene()
	due := s.endpoint(h).TimerDue
	for _, eff := range []broker.Effect{
		arm(h, time.Hour),
		{Kind: broker.EffectCancelTimer, Conversation: h},
		{Kind: broker.EffectTimer, Conversation: h, Cron: "* * * * * *"},
	} {
		s.say(c, "m")
		w := s.open(workQueue, 1)
		unmoved := func() {
			s.t.Helper()
			e := s.endpoint(h)
			s.equal("timer", []any{e.TimerDue, e.TimerCron}, []any{due, ""})
		}
		r := w.settle(commit(w.one("m"), eff, broker.Effect{Kind: broker.EffectEnd, Conversation: c}))
		s.equal("consequence", r.Consequence, broker.Refused)
		unmoved()
		for want, st := range map[broker.Consequence]broker.Settlement{broker.RolledBack: failure(nil), broker.Released: release(nil)} {
			st.Unit, st.Effects = w.one("m"), []broker.Effect{eff}
			w.want(want, st)
			unmoved()
		}
		w.commit(w.one("m"))
		w.close()
	}
	s.advance(time.Second)
	s.equal("fires as before", s.drainAll(workQueue), "[Timer]")
}

func endedTimer(s *stage) {
	_, h := s.timerScene()
	s.end(h, 0)
	_, g := s.timerScene()
	s.advance(time.Second)
	s.end(g, 0) // its DialogTimer waits already
	s.advance(time.Minute)
	s.equal("received", s.drainAll(workQueue), "[]")
	s.equal("far side", s.drainAll(homeQueue), "[EndDialog EndDialog]")
	c := s.begin()
	s.cron(c, "* * * * * *", "")
	s.end(c, 0)
	s.advance(time.Minute)
	s.equal("received", s.drainAll(homeQueue), "[]")
	s.equal("armed", len(s.snapshot(workQueue).Timers)+len(s.snapshot(homeQueue).Timers), 0)
}

func cancelTimer(s *stage) {
	c := s.begin()
	s.timer(c, 0) // nothing is armed: harmless
	s.timer(c, time.Second)
	s.timer(c, 0)
	s.timer(c, 0)
	s.equal("due", s.endpoint(c).TimerDue.IsZero(), true)
	s.advance(time.Minute)
	s.equal("received", s.drainAll(homeQueue), "[]")
	s.timer(c, time.Second)
	s.advance(time.Second)
	s.timer(c, 0) // it fired: that stays
	s.equal("received", s.drainAll(homeQueue), "[Timer]")
}

func neverEarly(s *stage) {
	for _, after := range []time.Duration{
		time.Nanosecond, time.Millisecond, 1500 * time.Microsecond, 999 * time.Millisecond, time.Second, 2500 * time.Millisecond, time.Hour,
	} {
		c := s.begin()
		s.timer(c, after)
		ms := (after + time.Millisecond - 1).Truncate(time.Millisecond)
		s.advance(ms - time.Millisecond)
		s.equal("early "+after.String(), s.drainAll(homeQueue), "[]")
		s.advance(time.Millisecond)
		s.equal("in time "+after.String(), s.drainAll(homeQueue), "[Timer]")
	}
}

func twoHostsFireOnce(s *stage) {
	const n = 20
	for range n {
		s.timer(s.begin(), time.Second)
	}
	s.h.Advance(time.Second)
	var wg sync.WaitGroup
	for range 4 {
		for _, host := range []Broker{s.h.Broker, s.h.Peer} {
			wg.Go(func() {
				if _, err := host.Keep(s.ctx); err != nil {
					s.t.Errorf("keep: %v", err)
				}
			})
		}
	}
	wg.Wait()
	s.equal("timers", len(s.drainAll(homeQueue)), n)
}

func timerStates(s *stage) {
	c := s.begin()
	s.say(c, "m0")
	h := s.target("m0")
	s.end(c, 0)
	s.timer(h, time.Second) // DI
	err := s.h.Broker.Timer(s.ctx, c, time.Second, "", "", 0)
	s.wantErr("timer in DO", err, broker.ErrTimerState)
	s.end(h, 0)
	err = s.h.Broker.Timer(s.ctx, h, time.Second, "", "", 0)
	s.wantErr("timer in CD", err, broker.ErrTimerState)
	d := s.begin()
	s.say(d, "n0")
	s.end(s.target("n0"), 12)
	s.timer(d, time.Second) // ER
	s.advance(time.Second)
	s.equal("received in ER", s.drainAll(homeQueue), "[Timer Error]")
	err = s.h.Broker.Timer(s.ctx, d[:len(d)-1]+flip(d[len(d)-1]), time.Second, "", "", 0)
	s.wantErr("timer on an unknown handle", err, broker.ErrUnknownConversation)
}

func cronRepeats(s *stage) {
	c := s.begin()
	s.cron(c, "*/10 * * * * *", "Europe/Berlin")
	e := s.endpoint(c)
	s.equal("armed", []any{e.TimerCron, e.TimerDue.Second()}, "[*/10 * * * * * 10]")
	for range 3 {
		s.advance(9999 * time.Millisecond)
		s.equal("early", s.drainAll(homeQueue), "[]")
		s.advance(time.Millisecond)
		s.equal("in time", s.drainAll(homeQueue), "[Timer]")
	}
	s.timer(c, 0)
	e = s.endpoint(c)
	s.equal("cancelled", []any{e.TimerCron, e.TimerDue.IsZero()}, "[ true]")
	s.advance(time.Minute)
	s.equal("after it was cancelled", s.drainAll(homeQueue), "[]")
	s.cron(c, "*/10 * * * * *", "")
	s.timer(c, 3*time.Second) // a plain timer replaces it
	s.advance(3 * time.Second)
	s.equal("replaced", s.drainAll(homeQueue), "[Timer]")
	s.advance(time.Minute)
	s.equal("once", s.drainAll(homeQueue), "[]")
}

// cronSurvives lets a host die at every call of the pass in which a repeating timer fires.
func cronSurvives(s *stage) {
	faultyCalls(s, func(k int, keep func()) {
		c := s.begin()
		s.cron(c, "*/20 * * * * *", "")
		s.h.Advance(20 * time.Second)
		s.h.LoseCall(k, 1000)
		keep()
		for range 3 { // the other host goes on: 4 more firings in this minute and 20 s
			s.h.Advance(5 * time.Second)
			s.peerKeep()
		}
		got := len(s.drainAll(homeQueue))
		for range 2 {
			s.h.Advance(20 * time.Second)
			s.peerKeep()
			got += len(s.drainAll(homeQueue))
		}
		s.equal("firings in a minute, the host died at call", []int{got, k}, []int{3, k})
		s.end(c, 0)
		s.h.Advance(5 * time.Second) // back to a whole minute, and past every lease
	})
}

// peerKeep makes one pass of housekeeping in the other host.
func (s *stage) peerKeep() {
	s.t.Helper()
	if _, err := s.h.Peer.Keep(s.ctx); err != nil {
		s.t.Fatalf("keep: %v", err)
	}
}

func cronLifetime(s *stage) {
	c := s.beginFor(25 * time.Second)
	s.cron(c, "*/10 * * * * *", "")
	var got []string
	for range 7 {
		s.advance(10 * time.Second)
		got = append(got, s.drainAll(homeQueue)...)
	}
	s.equal("received", got, "[Timer Timer Error]")
	s.equal("armed", len(s.snapshot(homeQueue).Timers), 0)
	s.equal("spec", s.endpoint(c).TimerCron, "")
}

func badTimers(s *stage) {
	c := s.begin()
	s.timer(c, time.Minute)
	due := s.endpoint(c).TimerDue
	for _, after := range []time.Duration{-1, -time.Second, broker.MaxLifetime + 1} {
		err := s.h.Broker.Timer(s.ctx, c, after, "", "", 0)
		s.wantErr("timer of "+after.String(), err, broker.ErrTimerValue)
	}
	for _, spec := range []string{"nonsense", "0 0 30 2 *", "60 * * * *", "@every 10ms", "@every -1s"} {
		err := s.h.Broker.Timer(s.ctx, c, 0, spec, "", 0)
		s.wantErr("timer by "+spec, err, broker.ErrTimerValue)
	}
	s.wantErr("unknown zone", s.h.Broker.Timer(s.ctx, c, 0, "* * * * *", "Mars/Olympus", 0), broker.ErrTimerValue)
	s.equal("the timer before", s.endpoint(c).TimerDue, due)
}
