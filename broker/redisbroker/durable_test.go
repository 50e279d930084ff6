package redisbroker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// durableLab is a lab on a server with one replica whose queues work and home want it to confirm.
func durableLab(t *testing.T) (*lab, *redistest.Server) {
	t.Helper()
	master := redistest.Start(t)
	replica := master.StartReplica(t)
	_, l := newHarness(t, master.URL(), nil)
	work, home := broker.DefaultQueue("work", true), broker.DefaultQueue("home", true)
	work.Durable, home.Durable = 1, 1
	contracts := []string{broker.ContractDefault}
	l.apply(t, broker.Definitions{
		Queues:   []broker.QueueSettings{work, home},
		Services: []broker.Service{{Name: "//t/Work", Queue: "work", Contracts: contracts}, {Name: "//t/Home", Queue: "home", Contracts: contracts}},
	})
	return l, replica
}

func (l *lab) sendOne(t *testing.T, id string) error {
	t.Helper()
	_, err := l.b.Send(t.Context(), "work", broker.Outgoing{MessageID: id, Body: []byte(id)})
	return err
}

func wantUnknown(t *testing.T, err error, id string) {
	t.Helper()
	if !errors.Is(err, broker.ErrUnknownStored) || !strings.Contains(err.Error(), id) {
		t.Errorf("got %v, want %v with the id %s", err, broker.ErrUnknownStored, id)
	}
}

func TestASendThatNoReplicaConfirmsIsUnknown(t *testing.T) {
	l, replica := durableLab(t)
	if err := l.sendOne(t, "m0"); err != nil {
		t.Fatal(err)
	}
	c := l.begin(t)
	replica.Pause(t)
	wantUnknown(t, l.sendOne(t, "m1"), "m1")
	_, err := l.b.SendOn(t.Context(), c, broker.Outgoing{MessageID: "m2"})
	wantUnknown(t, err, "m2")
	replica.Resume(t)
	if err := l.sendOne(t, "m3"); err != nil {
		t.Errorf("the replica is back: %v", err)
	}
}

// A repeat writes no message, and must not pass for confirmed because of that.
func TestARepeatedSendIsConfirmedOnlyByWhatTheFirstWrote(t *testing.T) {
	l, replica := durableLab(t)
	if err := l.sendOne(t, "m0"); err != nil {
		t.Fatal(err)
	}
	other := l.open(t) // its connections are new, as that of a repeat is after one broke
	replica.Pause(t)
	key := l.b.prefix("work") + "meta"
	for _, b := range []*Broker{l.b, other} {
		ctx, sure := b.confirming(t.Context(), "work")
		a, err := b.repeatStrings(ctx, "append", key, b.now(), "producer", 1, 1, "", "", "", "", "m1||", "m1")
		if err != nil || a[1] != "2" {
			t.Fatalf("append: %v, %v", a, err)
		}
		if sure.met() {
			t.Errorf("the answer %s is confirmed by a replica that stands still", a[0])
		}
	}
	replica.Resume(t)
	l.wantReady(t, "once", "work", "[m0 m1]")
}

func TestATurnThatNoReplicaConfirmsIsSettledAndTold(t *testing.T) {
	l, replica := durableLab(t)
	for _, id := range []string{"m0", "m1", "m2"} {
		if err := l.sendOne(t, id); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.b.OpenReader(t.Context(), "work", broker.ReaderOptions{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	var settle []broker.Settlement
	ids := []string{}
	turn := func() {
		t.Helper()
		rep, err := r.Turn(t.Context(), broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1, Settle: settle})
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range rep.Results {
			if res.Err != nil || res.Consequence != broker.Committed {
				t.Errorf("result %+v, want committed", res)
			}
		}
		settle = nil
		for _, u := range rep.Units {
			ids = append(ids, u.Messages[0].MessageID)
			settle = append(settle, broker.Settlement{Unit: u, Verdict: broker.VerdictCommit})
		}
	}
	turn()
	replica.Pause(t)
	turn()
	turn()
	turn()
	replica.Resume(t)
	if got := strings.Join(ids, " "); got != "m0 m1 m2" {
		t.Errorf("handed out %s, want each once", got)
	}
	l.wantReady(t, "all are settled", "work", "[]")
	l.wantEvents(t, "work", "not_durable", "wanted confirmed", "1 0") // one for three turns
}

func TestATransmissionStaysAtItsSourceUntilTheTargetsReplicasConfirm(t *testing.T) {
	l, replica := durableLab(t)
	l.status(t, "work", broker.QueueOff)
	l.sendLater(t, "p0")
	l.status(t, "work", broker.QueueActive)
	replica.Pause(t)
	l.transmit(t)
	l.wantTransmission(t, "queue:work", 1)
	l.clock.Add(time.Minute.Milliseconds())
	l.transmit(t) // the target knows it; the replica still has not confirmed
	l.wantTransmission(t, "queue:work", 1)
	replica.Resume(t)
	redistest.Eventually(t, "the replica confirms", func() bool {
		l.clock.Add(time.Minute.Milliseconds())
		l.transmit(t)
		info, err := l.b.Queue(t.Context(), "home")
		return err == nil && info.Counts.Transmission == 0
	})
	l.wantReady(t, "once", "work", "[p0]")
}

func TestDoubtsAreToldOncePerChangeAndNotOftenerThanEveryTenSeconds(t *testing.T) {
	var d doubts
	at := time.Unix(1_000_000, 0)
	for i, step := range []struct {
		after time.Duration
		met   bool
		want  bool
	}{
		{0, true, false},
		{0, false, true},
		{5 * time.Second, false, false},
		{time.Second, true, false},
		{time.Second, false, false}, // a change, but too soon
		{4 * time.Second, false, true},
		{20 * time.Second, true, false},
		{0, false, true},
	} {
		at = at.Add(step.after)
		if got := d.due("q", step.met, at); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}

func TestTheEmbeddedServerRefusesDurable(t *testing.T) {
	b, err := OpenEmbedded(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	q := broker.DefaultQueue("q", false)
	q.Durable = 1
	if _, err := b.Apply(t.Context(), broker.Definitions{Queues: []broker.QueueSettings{q}}, false); !errors.Is(err, broker.ErrInvalid) {
		t.Errorf("got %v, want %v", err, broker.ErrInvalid)
	}
}
