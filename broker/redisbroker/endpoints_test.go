package redisbroker

import (
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// behindProxy is a client of its own whose commands pass a proxy, and another one that sees all.
func behindProxy(t *testing.T) (p *redistest.Proxy, b func() *Broker, l *lab) {
	t.Helper()
	s := redistest.Start(t)
	l = &lab{opt: Options{URL: s.URL(), Namespace: "r"}}
	l.b = l.open(t)
	services := []broker.Service{{Name: "//A", Queue: "qa", Contracts: []string{"DEFAULT"}}, {Name: "//B", Queue: "qb", Contracts: []string{"DEFAULT"}}}
	l.apply(t, broker.Definitions{
		Queues: []broker.QueueSettings{broker.DefaultQueue("q", false), broker.DefaultQueue("qa", true), broker.DefaultQueue("qb", true)}, Services: services,
	})
	p = redistest.NewProxy(t, s.Addr())
	return p, func() *Broker { return (&lab{opt: Options{URL: p.URL(), Namespace: "r"}}).open(t) }, l
}

// talk begins a dialog from //A to //B and sends the bodies on it.
func (l *lab) talk(t *testing.T, bodies ...string) {
	t.Helper()
	e, err := l.b.Begin(t.Context(), broker.Dialog{From: "//A", To: "//B"})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if _, err := l.b.SendOn(t.Context(), e.Handle, broker.Outgoing{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
}

// uncounted checks that nothing on qb counts a delivery, and that the queue is on.
func (l *lab) uncounted(t *testing.T) {
	t.Helper()
	q, err := l.b.Queue(t.Context(), "qb")
	if err != nil || q.Status != broker.QueueActive {
		t.Errorf("the queue is %s, %v", q.Status, err)
	}
	rows, err := l.b.Peek(t.Context(), "qb", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].DeliveryCount != 0 || rows[i].PoisonCount != 0 {
			t.Errorf("%s counts %d deliveries, %d rollbacks", rows[i].Body, rows[i].DeliveryCount, rows[i].PoisonCount)
		}
	}
}

var lookUp = redistest.Command("HMGET", "{r/qb}:ep")

func oneSlot() broker.TurnRequest { return broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1} }

func commitOf(u *broker.Unit) broker.TurnRequest {
	req := oneSlot()
	req.Settle = []broker.Settlement{{Unit: u}}
	return req
}

// wantUnit checks that a turn handed out one message with what its conversation says.
func wantUnit(t *testing.T, rep broker.TurnReply, err error, body string) *broker.Unit {
	t.Helper()
	if err != nil || len(rep.Units) != 1 {
		t.Fatalf("got %d units, %v; want %s", len(rep.Units), err, body)
	}
	m := rep.Units[0].Messages[0]
	if string(m.Body) != body || m.Service != "//B" || m.FarService != "//A" || m.Contract != "DEFAULT" || m.DeliveryCount != 0 {
		t.Errorf("got %q of %s from %s by %s, delivered %d times; want %s", m.Body, m.Service, m.FarService, m.Contract, m.DeliveryCount, body)
	}
	return rep.Units[0]
}

// TestAReceiveBringsWhatItNeeds: no second call is made whose failure would lose what was handed out.
func TestAReceiveBringsWhatItNeeds(t *testing.T) {
	p, open, l := behindProxy(t)
	l.talk(t, "m0")
	b := open()
	look := p.CutRequest(lookUp)
	d, err := b.Receive(t.Context(), "qb", broker.ReceiveOptions{Max: 1, Lock: time.Minute})
	if err != nil || len(d) != 1 {
		t.Fatalf("got %d deliveries, %v", len(d), err)
	}
	wantUnit(t, broker.TurnReply{Units: []*broker.Unit{d[0].Unit}}, nil, "m0")
	select {
	case <-look.Hit():
		t.Error("the receive looked its conversation up in a call of its own")
	default:
	}
	if r, err := b.Settle(t.Context(), "qb", d[0].Token, broker.Settlement{}); err != nil || r.Consequence != broker.Committed {
		t.Errorf("settled: %+v, %v", r, err)
	}
	l.uncounted(t)
}

// TestAFirstTurnBringsWhatItNeeds for six clients, one after another, each of which would have lost what it was handed.
func TestAFirstTurnBringsWhatItNeeds(t *testing.T) {
	p, open, l := behindProxy(t)
	l.talk(t, "m0")
	for range 6 {
		b := open()
		p.CutRequest(lookUp)
		r, err := b.OpenReader(t.Context(), "qb", broker.ReaderOptions{Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := r.Turn(t.Context(), oneSlot())
		wantUnit(t, rep, err, "m0")
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.uncounted(t)
	}
}

// TestALaterTurnLooksAgain: a turn that was not asked for endpoints, since the last brought no news, gets them by a look-up, which is made again
// when it is cut; the next turn brings its own.
func TestALaterTurnLooksAgain(t *testing.T) {
	p, open, l := behindProxy(t)
	l.talk(t, "m0", "m1", "m2")
	r, err := open().OpenReader(t.Context(), "qb", broker.ReaderOptions{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	var u *broker.Unit
	for _, body := range []string{"m0", "m1", "m2"} {
		req := oneSlot()
		if u != nil {
			req = commitOf(u)
		}
		rep, err := r.Turn(t.Context(), req)
		u = wantUnit(t, rep, err, body)
	}
	l.talk(t, "n0")
	cut := p.CutRequest(lookUp)
	rep, err := r.Turn(t.Context(), commitOf(u))
	u = wantUnit(t, rep, err, "n0")
	cut.Await(t)
	l.talk(t, "o0")
	look := p.CutRequest(lookUp)
	rep, err = r.Turn(t.Context(), commitOf(u))
	wantUnit(t, rep, err, "o0")
	select {
	case <-look.Hit():
		t.Error("the turn behind news did not bring its endpoints")
	default:
	}
}

// TestAFailedLookUpHidesNoCommit: the turn that committed says so, and what it could not complete goes back at once, uncounted.
func TestAFailedLookUpHidesNoCommit(t *testing.T) {
	p, open, l := behindProxy(t)
	l.talk(t, "m0", "m1", "m2")
	r, err := open().OpenReader(t.Context(), "qb", broker.ReaderOptions{Slots: 1, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Turn(t.Context(), oneSlot())
	u := wantUnit(t, rep, err, "m0")
	for _, body := range []string{"m1", "m2"} {
		rep, err = r.Turn(t.Context(), commitOf(u))
		u = wantUnit(t, rep, err, body)
	}
	l.talk(t, "n0") // the last turn brought no news: this one must be looked up
	for range 100 {
		p.CutRequest(lookUp)
	}
	rep, err = r.Turn(t.Context(), commitOf(u))
	if err != nil || len(rep.Results) != 1 || rep.Results[0].Consequence != broker.Committed {
		t.Fatalf("the turn that committed says %+v, %v", rep.Results, err)
	}
	if len(rep.Units) != 0 || !rep.Again {
		t.Errorf("got %d units, again %v; want none, and another turn at once", len(rep.Units), rep.Again)
	}
	rep, err = r.Turn(t.Context(), broker.TurnRequest{Top: 1})
	if err != nil || len(rep.Results) != 0 || rep.Waiting != 1 {
		t.Fatalf("got results %v, %d waiting, %v; want what was not handed out to wait again", rep.Results, rep.Waiting, err)
	}
	l.uncounted(t)
	rep, err = r.Turn(t.Context(), oneSlot())
	wantUnit(t, rep, err, "n0")
}
