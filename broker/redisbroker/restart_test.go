package redisbroker

import (
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// TestT_TM_4 with a server that stops and comes back between the arming and the firing, and then once more while the timer is
// overdue.
func TestT_TM_4_armed_timers_survive_a_restart_of_the_server(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes"), redistest.Config("appendfsync always"))
	h, l := newHarness(t, s.URL(), nil)
	contracts := []string{broker.ContractDefault}
	l.apply(t, broker.Definitions{
		Queues:    []broker.QueueSettings{broker.DefaultQueue("work", true), broker.DefaultQueue("home", true)},
		Services:  []broker.Service{{Name: "//t/Work", Queue: "work", Contracts: contracts}, {Name: "//t/Home", Queue: "home", Contracts: contracts}},
		Schedules: []broker.Schedule{{Name: "tick", Cron: "0 * * * * *", To: "//t/Work"}},
	})
	if _, err := h.Peer.Queue(t.Context(), "work"); err != nil { // so that it knows the queues from here on
		t.Fatal(err)
	}
	c := l.begin(t)
	for _, spec := range []string{"", "30 * * * * *"} {
		if err := l.b.Timer(t.Context(), c, 5*time.Second, spec, "", 0); err != nil {
			t.Fatal(err)
		}
		s.Restart(t)
		e, err := l.b.Endpoint(t.Context(), c)
		if err != nil || e.TimerDue.IsZero() || e.TimerCron != spec {
			t.Fatalf("armed after the restart: %v %q, %v", e.TimerDue, e.TimerCron, err)
		}
		h.Advance(2 * time.Minute)
		s.Restart(t)
		for range 2 { // overdue: once, at start
			if _, err := h.Peer.Keep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := l.b.Receive(t.Context(), "home", broker.ReceiveOptions{Max: 10, Top: 10})
		if err != nil || len(got) != 1 || len(got[0].Unit.Messages) != 1 || got[0].Unit.Messages[0].Kind != broker.KindDialogTimer {
			t.Fatalf("received %+v, %v; want one DialogTimer", got, err)
		}
		if _, err := l.b.Settle(t.Context(), "home", got[0].Token, broker.Settlement{Unit: got[0].Unit}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := l.b.Peek(t.Context(), "work", 0, 10)
	if err != nil || len(rows) != 2 || rows[0].MessageID == rows[1].MessageID {
		t.Fatalf("runs of the schedule: %v, %v; want two, one each time it was overdue", rows, err)
	}
}
