package redisbroker

import (
	"fmt"
	"testing"
	"time"

	"parley/broker"
	"parley/broker/brokertest"
)

// onEach runs f on a namespace of the real server and on one of the embedded server, each with queues work and home that serve
// //t/Work and //t/Home.
func onEach(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Helper()
	for name, open := range map[string]brokertest.New{"real": openReal(nil, nil), "embedded": openEmbedded(nil, nil)} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			b := h.Broker.(*Broker)
			l := &lab{opt: b.opt, b: b, advance: h.Advance}
			contracts := []string{broker.ContractDefault}
			l.apply(t, broker.Definitions{
				Queues:   []broker.QueueSettings{broker.DefaultQueue("work", true), broker.DefaultQueue("home", true)},
				Services: []broker.Service{{Name: "//t/Work", Queue: "work", Contracts: contracts}, {Name: "//t/Home", Queue: "home", Contracts: contracts}},
			})
			f(t, l)
		})
	}
}

func (l *lab) apply(t *testing.T, d broker.Definitions) {
	t.Helper()
	if _, err := l.b.Apply(t.Context(), d, false); err != nil {
		t.Fatal(err)
	}
}

// begin begins a dialog from //t/Home to //t/Work.
func (l *lab) begin(t *testing.T) string {
	t.Helper()
	e, err := l.b.Begin(t.Context(), broker.Dialog{From: "//t/Home", To: "//t/Work"})
	if err != nil {
		t.Fatal(err)
	}
	return e.Handle
}

func (l *lab) say(t *testing.T, handle string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := l.b.SendOn(t.Context(), handle, broker.Outgoing{MessageID: id, Body: []byte(id)}); err != nil {
			t.Fatal(err)
		}
	}
}

// ready is the message ids that wait on queue, in order.
func (l *lab) ready(t *testing.T, queue string) string {
	t.Helper()
	rows, err := l.b.Peek(t.Context(), queue, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, m := range rows {
		ids = append(ids, string(m.Body))
	}
	return fmt.Sprint(ids)
}

func (l *lab) wantReady(t *testing.T, what, queue, want string) {
	t.Helper()
	if got := l.ready(t, queue); got != want {
		t.Fatalf("%s: %s holds %s, want %s", what, queue, got, want)
	}
}

func (l *lab) status(t *testing.T, queue string, s broker.QueueStatus) {
	t.Helper()
	if err := l.b.SetStatus(t.Context(), queue, s); err != nil {
		t.Fatal(err)
	}
}

// transmit makes one pass of the transmitter over what waits on home.
func (l *lab) transmit(t *testing.T) {
	t.Helper()
	if _, err := l.b.transmitAll(t.Context(), l.b.prefix("home"), &broker.KeepReport{}); err != nil {
		t.Fatal(err)
	}
}

// head is the first entry of the transmission stream from home to //t/Work.
func (l *lab) head(t *testing.T) *transmission {
	t.Helper()
	a, err := l.b.repeatStrings(t.Context(), "txhead", l.b.prefix("home")+"meta", l.b.now(), "//t/Work", "another transmitter", 1)
	if err != nil || a[0] != "ENTRY" {
		t.Fatalf("txhead: %v, %v", a, err)
	}
	return &transmission{id: a[1], digest: a[2], era: a[3], refused: a[4], fields: flatFields(a[5:])}
}

// TestT_OR_7: status 2 does not occur; a message whose forerunner is missing is refused and tried again.
func TestT_OR_7_a_gap_is_refused_until_it_is_filled(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		c := l.begin(t)
		l.say(t, c, "first")
		l.status(t, "work", broker.QueueOff)
		l.say(t, c, "m0", "m1")
		l.status(t, "work", broker.QueueActive)
		m0 := l.head(t)
		l.advance(time.Minute)                                   // past the other's lease
		l.do(t, "XDEL", l.b.prefix("home")+"tx://t/Work", m0.id) // m0 has lost its way
		l.transmit(t)
		l.wantReady(t, "m1 came first", "work", "[first]")
		info, err := l.b.Queue(t.Context(), "home")
		if err != nil || len(info.Transmit) != 1 || info.Transmit[0].Waiting != 1 {
			t.Fatalf("transmission: %+v, %v", info.Transmit, err)
		}
		m0.id = "1-0"
		a, err := l.b.arrive(t.Context(), "{elsewhere}:", "//t/Work", "work", m0, "")
		if err != nil || a[0] != "stored" {
			t.Fatalf("m0: %v, %v", a, err)
		}
		l.advance(time.Minute)
		l.transmit(t)
		l.wantReady(t, "m0 came", "work", "[first m0 m1]")
	})
}

// A repeat is known by the stream id of the last entry that came, so ids must grow even when the server's clock does not.
func TestTransmissionGoesOnWhenTheServersClockWentBack(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		c := l.begin(t)
		l.status(t, "work", broker.QueueOff)
		l.say(t, c, "m0")
		m := l.head(t)
		args := []any{"XADD", l.b.prefix("home") + "tx://t/Work", "9999999999999-0"} // as if it was sent before the clock went back
		for k, v := range m.fields {
			args = append(args, k, v)
		}
		l.do(t, args...)
		l.do(t, "XDEL", l.b.prefix("home")+"tx://t/Work", m.id)
		l.status(t, "work", broker.QueueActive)
		l.advance(time.Minute)
		l.transmit(t)
		l.wantReady(t, "before", "work", "[m0]")
		l.status(t, "work", broker.QueueOff)
		l.say(t, c, "m1")
		l.status(t, "work", broker.QueueActive)
		l.advance(time.Minute)
		l.transmit(t)
		l.wantReady(t, "after", "work", "[m0 m1]")
	})
}
