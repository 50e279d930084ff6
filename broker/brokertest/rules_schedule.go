package brokertest

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"parley/broker"
)

// scheduleRules are the rules about schedules and about events that are sent as messages.
var scheduleRules = []test{
	{"TestSchedule_each_run_is_one_message_named_after_its_instant", scheduleRuns},
	{"TestSchedule_several_keepers_run_it_once", scheduleKeepers},
	{"TestSchedule_survives_the_death_of_who_arms_it_again", scheduleSurvives},
	{"TestSchedule_overdue_after_downtime_runs_once", func(s *stage) {
		s.schedule("*/15 * * * * *")
		s.h.Advance(100 * time.Second)
		s.peerKeep()
		got := s.runs()
		s.equal("runs", len(got), 1)
		s.equal("planned", got[0], s.planned(15*time.Second))
		s.h.Advance(5 * time.Second)
		s.peerKeep()
		s.equal("the next, on time", s.runs(), []string{s.planned(105 * time.Second)})
	}},
	{"TestSchedule_while_its_queue_is_off", func(s *stage) {
		s.schedule("*/15 * * * * *")
		s.status(workQueue, broker.QueueOff)
		s.keepFor(40 * time.Second)
		s.status(workQueue, broker.QueueActive)
		s.keep()
		s.equal("runs", s.runs(), []string{s.planned(15 * time.Second)})
		s.advance(5 * time.Second)
		s.equal("the next, on time", s.runs(), []string{s.planned(45 * time.Second)})
	}},
	{"TestSchedule_applied_again_neither_skips_nor_doubles", func(s *stage) {
		for range 5 {
			s.schedule("*/15 * * * * *")
			s.advance(6 * time.Second)
		}
		s.equal("runs", s.runs(), []string{s.planned(15 * time.Second), s.planned(30 * time.Second)})
	}},
	{"TestSchedule_a_handler_that_ends_its_dialog_gets_the_next_run_all_the_same", func(s *stage) {
		s.schedule("*/15 * * * * *")
		var handles []string
		for range 3 {
			s.advance(15 * time.Second)
			w := s.open(workQueue, 1)
			u := w.receive().Units[0]
			h := u.Messages[0].Conversation
			handles = append(handles, h)
			w.commit(u, broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("to nobody")},
				broker.Effect{Kind: broker.EffectEnd, Conversation: h})
			w.close()
		}
		s.equal("dialogs", handles[0] != handles[1] && handles[1] != handles[2] && handles[0] != handles[2], true)
		s.equal("left", s.queue(workQueue).Counts.Transmission, 0)
		s.snapshot(workQueue)
	}},
	{"TestSchedule_nonsense_is_refused", func(s *stage) {
		for _, spec := range []string{"", "nonsense", "0 0 31 2 *", "@every 1ms"} {
			_, err := s.h.Broker.Apply(s.ctx, broker.Definitions{Schedules: []broker.Schedule{{Name: "tick", Cron: spec, To: workSvc}}}, false)
			s.wantErr("schedule "+spec, err, broker.ErrInvalid)
		}
	}},
	{"TestNotify_queue_disabled_is_an_ordinary_message", notified},
	{"TestNotify_once_though_the_reply_is_lost", func(s *stage) {
		s.watch()
		s.sendSession(workQueue, "m", "m")
		w := s.open(workQueue, 1)
		for range 4 {
			w.fail(w.one("m"))
		}
		u := w.one("m")
		s.h.LoseReply(0, 1)
		w.settle(failure(u))
		s.equal("status", s.queue(workQueue).Status, broker.QueueOff)
		s.equal("notified", len(s.drainAll("watch")), 1)
	}},
	{"TestNotify_once_though_the_watching_queue_is_off", func(s *stage) {
		s.watch()
		s.status("watch", broker.QueueOff)
		s.poison("m")
		s.keepFor(10 * time.Second)
		s.equal("what a queue that is off took", s.queue("watch").Counts, broker.Counts{})
		s.status("watch", broker.QueueActive)
		s.keepFor(5 * time.Second)
		s.equal("notified", len(s.drainAll("watch")), 1)
		s.equal("transmission", s.queue(workQueue).Counts.Transmission, 0)
	}},
	{"TestNotify_of_a_host_that_dies_five_times", func(s *stage) {
		s.watch()
		s.sendSession(workQueue, "k", "KILL")
		s.equal("starts", s.crashes(workQueue, "KILL"), 5)
		s.equal("notified", len(s.drainAll("watch")), 1)
	}},
}

// schedule applies schedule tick, whose runs go to workSvc. The clock stands at a whole minute.
func (s *stage) schedule(spec string) {
	s.t.Helper()
	s.apply(broker.Definitions{Schedules: []broker.Schedule{{Name: "tick", Cron: spec, To: workSvc}}})
}

// planned is the message id of the run of tick that long after the clock's start.
func (s *stage) planned(after time.Duration) string {
	return s.plannedAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(after))
}

// plannedAt is the message id of the run of tick at an instant.
func (s *stage) plannedAt(at time.Time) string { return fmt.Sprintf("tick@%d", at.UnixMilli()) }

// runs consumes what waits on workQueue and returns the message ids.
func (s *stage) runs() []string {
	s.t.Helper()
	var ids []string
	w := s.open(workQueue, 1)
	defer w.close()
	for {
		rep := w.receive()
		if len(rep.Units) == 0 {
			return ids
		}
		for _, m := range rep.Units[0].Messages {
			ids = append(ids, m.MessageID)
		}
		w.commit(rep.Units[0])
	}
}

func scheduleRuns(s *stage) {
	s.schedule("*/15 * * * * *")
	s.advance(14999 * time.Millisecond)
	s.equal("early", s.runs(), "[]")
	s.advance(time.Millisecond)
	w := s.open(workQueue, 1)
	u := w.receive().Units[0]
	m := u.Messages[0]
	s.equal("run", []any{m.MessageID, m.Kind, m.Type, m.Service, m.FarService}, []any{
		s.planned(15 * time.Second), broker.KindApp, broker.TypeDefault, workSvc, "parley/schedule/tick",
	})
	s.equal("properties", []string{m.Properties["parley.schedule"], "tick@" + m.Properties["parley.planned"]}, []string{"tick", m.MessageID})
	w.commit(u)
	w.close()
	s.advance(15 * time.Second)
	s.equal("next", s.runs(), []string{s.planned(30 * time.Second)})
}

func scheduleKeepers(s *stage) {
	s.schedule("*/15 * * * * *")
	var want []string
	for i := range 4 {
		s.h.Advance(15 * time.Second)
		var wg sync.WaitGroup
		for range 3 {
			for _, host := range []Broker{s.h.Broker, s.h.Peer} {
				wg.Go(func() {
					if _, err := host.Keep(s.ctx); err != nil {
						s.t.Errorf("keep: %v", err)
					}
				})
			}
		}
		wg.Wait()
		want = append(want, s.planned(time.Duration(i+1)*15*time.Second))
	}
	s.equal("runs", s.runs(), want)
}

func scheduleSurvives(s *stage) {
	s.schedule("*/20 * * * * *")
	at := 20 * time.Second
	faultyCalls(s, func(k int, keep func()) {
		s.h.Advance(20 * time.Second)
		s.h.LoseCall(k, 1000)
		keep()
		want := []string{s.planned(at)}
		for range 8 { // the other host goes on
			s.h.Advance(5 * time.Second)
			s.peerKeep()
		}
		for range 2 {
			at += 20 * time.Second
			want = append(want, s.planned(at))
		}
		at += 20 * time.Second
		s.equal(fmt.Sprint("runs; the host died at call ", k), s.runs(), want)
	})
}

// watch has queue_disabled events of workQueue sent to a service of their own queue.
func (s *stage) watch() {
	s.t.Helper()
	s.apply(broker.Definitions{
		Queues:   []broker.QueueSettings{broker.DefaultQueue("watch", true)},
		Services: []broker.Service{{Name: "//t/Watch", Queue: "watch", Contracts: []string{broker.ContractDefault}}},
		Notify:   []broker.EventNotification{{Event: "queue_disabled", Queue: workQueue, To: "//t/Watch"}},
	})
}

func notified(s *stage) {
	s.watch()
	s.alter(workQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 100 })
	c := s.begin()
	s.say(c, "bad")
	h := s.target("bad")
	w := s.open(workQueue, 1)
	for range 4 {
		w.fail(w.one("bad"))
	}
	w.want(broker.QueueTurned, failure(w.one("bad")))
	v := s.open("watch", 1)
	u := v.receive().Units[0]
	var e struct {
		Type, Queue, Reason string
		Rollbacks           int
		Handle              string `json:"conversation_handle"`
		Message             string `json:"message_id"`
		Last                string `json:"last_error"`
	}
	if err := json.Unmarshal(u.Messages[0].Body, &e); err != nil {
		s.t.Fatalf("%s: %v", u.Messages[0].Body, err)
	}
	s.equal("event", []any{e.Type, e.Queue, e.Reason, e.Rollbacks, e.Handle, e.Message, e.Last},
		[]any{"queue_disabled", workQueue, "poison", 5, h, "bad", "HandlerError: it broke"})
	v.commit(u)
	v.none()
	s.status(workQueue, broker.QueueActive)
	for range 4 {
		w.fail(w.one("bad"))
	}
	w.want(broker.QueueTurned, failure(w.one("bad")))
	s.equal("again, one each time it goes off", len(s.drainAll("watch")), 1)
}
