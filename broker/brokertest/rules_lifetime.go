package brokertest

import (
	"time"

	"parley/broker"
)

// lifetimeRules are the rules about the lifetime of dialogs (DG-10, DG-11).
var lifetimeRules = []test{
	{"TestT_LT_1_both_sides_get_8489", lifetimeEnds},
	{"TestT_LT_2_no_timer_beyond_the_lifetime", func(s *stage) {
		c := s.beginFor(time.Minute)
		err := s.h.Broker.Timer(s.ctx, c, time.Minute+time.Millisecond, "", "", 0)
		s.wantErr("timer beyond the lifetime", err, broker.ErrTimerBeyondLifetime)
		s.timer(c, time.Minute)
		s.say(c, "m")
		err = s.h.Broker.Timer(s.ctx, s.target("m"), 61*time.Second, "", "", 0)
		s.wantErr("timer of the target", err, broker.ErrTimerBeyondLifetime)
		s.advance(30 * time.Second)
		err = s.h.Broker.Timer(s.ctx, c, 31*time.Second, "", "", 0)
		s.wantErr("timer beyond what is left", err, broker.ErrTimerBeyondLifetime)
	}},
	{"TestDG_10_values", lifetimeValues},
	{"TestDG_11_refused_from_the_very_instant", func(s *stage) {
		c := s.beginFor(time.Second)
		s.say(c, "m")
		h := s.target("m")
		s.h.Advance(999 * time.Millisecond)
		s.say(c, "n")
		s.h.Advance(time.Millisecond) // and nobody keeps house
		for _, side := range []string{c, h} {
			_, err := s.h.Broker.SendOn(s.ctx, side, message("late"))
			s.wantErr("send after the lifetime", err, broker.ErrConversationEnded)
		}
	}},
	{"TestDG_11_what_waits_for_transmission_is_dropped", func(s *stage) {
		c := s.beginFor(time.Minute)
		s.say(c, "m0")
		s.status(workQueue, broker.QueueOff)
		s.say(c, "m1", "m2")
		s.advance(time.Minute)
		s.equal("transmission", s.queue(homeQueue).Counts.Transmission, 0)
		s.status(workQueue, broker.QueueActive)
		s.advance(time.Minute)
		s.equal("target", s.drainAll(workQueue), "[Error m0]")
		s.equal("initiator", s.drainAll(homeQueue), "[Error]")
	}},
	{"TestDG_11_a_late_arrival_makes_no_endpoint", func(s *stage) {
		c := s.beginFor(time.Minute)
		s.status(workQueue, broker.QueueOff)
		s.say(c, "m0")
		s.h.Advance(time.Minute)
		s.status(workQueue, broker.QueueActive)
		s.advance(5 * time.Second)
		s.equal("target", s.drainAll(workQueue), "[]")
		s.equal("endpoints", len(s.snapshot(workQueue).Conversations), 0)
		s.equal("initiator", s.drainAll(homeQueue), "[Error]")
	}},
	{"TestDG_11_one_Error_only", func(s *stage) {
		c := s.beginFor(time.Minute)
		s.say(c, "m")
		h := s.target("m")
		s.h.Advance(time.Minute)
		s.end(h, 12) // nobody has told it yet that the time is over
		s.keep()
		s.equal("initiator", s.errorCodes(homeQueue), "[-8489]")
		s.equal("target", s.drainAll(workQueue), "[]")
	}},
	{"TestST_3_a_closed_target_lingers_for_half_an_hour", lingering},
	{"TestDG_11_a_queue_that_is_off_gets_its_Error_when_it_is_on", func(s *stage) {
		c := s.beginFor(time.Minute)
		s.say(c, "m")
		s.equal("received", s.drainAll(workQueue), "[m]")
		s.status(workQueue, broker.QueueOff)
		s.advance(2 * time.Minute)
		s.status(workQueue, broker.QueueActive)
		s.keep()
		s.equal("target", s.drainAll(workQueue), "[Error]")
	}},
}

// beginFor begins a dialog from homeSvc to workSvc with that lifetime.
func (s *stage) beginFor(life time.Duration) string {
	s.t.Helper()
	e, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: workSvc, Lifetime: life})
	if err != nil {
		s.t.Fatalf("begin dialog: %v", err)
	}
	return e.Handle
}

// errorCodes consumes everything on queue and returns the codes of the Error messages.
func (s *stage) errorCodes(queue string) []string {
	s.t.Helper()
	w := s.open(queue, 1)
	defer w.close()
	var codes []string
	for {
		rep := w.receive()
		if len(rep.Units) == 0 {
			return codes
		}
		for _, m := range rep.Units[0].Messages {
			if m.Kind == broker.KindError {
				codes = append(codes, between(string(m.Body), "<Code>", "</Code>"))
			}
		}
		w.commit(rep.Units[0])
	}
}

func lifetimeEnds(s *stage) {
	c := s.beginFor(time.Second)
	s.say(c, "m0")
	h := s.target("m0")
	s.say(h, "r0")
	s.advance(999 * time.Millisecond)
	s.equal("before", []broker.State{s.endpoint(c).State, s.endpoint(h).State}, "[CO CO]")
	s.advance(time.Millisecond)
	s.equal("after", []broker.State{s.endpoint(c).State, s.endpoint(h).State}, "[ER ER]")
	for queue, want := range map[string][]string{workQueue: {"Error", "m0"}, homeQueue: {"Error", "r0"}} {
		w := s.open(queue, 1)
		u := w.one("Error")
		s.equal("code", between(string(u.Messages[0].Body), "<Code>", "</Code>"), "-8489")
		w.commit(u)
		w.commit(w.one(want[1])) // what came before can still be received
		w.close()
	}
	for _, side := range []string{c, h} {
		_, err := s.h.Broker.SendOn(s.ctx, side, message("late"))
		s.wantErr("send after the lifetime", err, broker.ErrConversationEnded)
	}
	s.advance(24 * time.Hour)
	s.equal("nobody ends it for them", []broker.State{s.endpoint(c).State, s.endpoint(h).State}, "[ER ER]")
	s.end(c, 0)
	s.end(h, 0)
	_, err := s.h.Broker.Endpoint(s.ctx, c)
	s.wantErr("ended initiator", err, broker.ErrUnknownConversation)
	s.equal("ended target", s.endpoint(h).State, broker.StateClosed)
	s.equal("heard", []any{s.drainAll(homeQueue), s.drainAll(workQueue)}, "[[] []]")
}

func lifetimeValues(s *stage) {
	for _, bad := range []time.Duration{-time.Second, time.Nanosecond, 999 * time.Millisecond, broker.MaxLifetime + 1} {
		_, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: workSvc, Lifetime: bad})
		s.wantErr("lifetime "+bad.String(), err, broker.ErrLifetime)
	}
	e := s.endpoint(s.begin())
	s.equal("default", e.ExpiresAt.Sub(e.CreatedAt), broker.DefaultLifetime)
	e = s.endpoint(s.beginFor(broker.MaxLifetime))
	s.equal("longest", e.ExpiresAt.Sub(e.CreatedAt), broker.MaxLifetime)
	forever := s.beginFor(broker.Forever)
	s.equal("forever", s.endpoint(forever).ExpiresAt.IsZero(), true)
	s.say(forever, "m")
	s.equal("forever at the target", s.endpoint(s.target("m")).ExpiresAt.IsZero(), true)
	short := s.beginFor(time.Hour)
	s.h.Advance(time.Minute)
	s.say(short, "n") // it counts from BEGIN DIALOG, on both sides
	s.equal("target's end", s.endpoint(s.target("n")).ExpiresAt, s.endpoint(short).ExpiresAt)
}

func lingering(s *stage) {
	c := s.begin()
	s.say(c, "m")
	h := s.target("m")
	s.end(h, 0)
	s.end(c, 0)
	_, err := s.h.Broker.Endpoint(s.ctx, c)
	s.wantErr("the initiator goes at once", err, broker.ErrUnknownConversation)
	s.advance(30*time.Minute - time.Millisecond)
	s.equal("target", s.endpoint(h).State, broker.StateClosed)
	s.equal("closed at", s.endpoint(h).ClosedAt.IsZero(), false)
	s.advance(time.Millisecond)
	_, err = s.h.Broker.Endpoint(s.ctx, h)
	s.wantErr("the target goes after half an hour", err, broker.ErrUnknownConversation)
}
