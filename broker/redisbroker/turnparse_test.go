package redisbroker

import (
	"errors"
	"strings"
	"testing"

	"parley/broker"
)

// reading returns a reader as it stands between two turns: it settles a plain unit and one of a group.
func reading() (*reader, []broker.Settlement, []int) {
	r := &reader{b: &Broker{}, queue: "q", prefix: "{ns/q}:", held: map[uint64]*held{}, runs: map[string]int{"s:x": 3}, bodies: []any{"a\nb"}}
	var settle []broker.Settlement
	for i, g := range []string{"", "s:x"} {
		u := &broker.Unit{ID: uint64(i + 1), Slot: i, Group: g}
		r.held[u.ID], r.nextID = &held{unit: u}, u.ID
		settle = append(settle, broker.Settlement{Unit: u})
	}
	return r, settle, []int{0, 1}
}

const (
	replyHead  = "ON\n1000000\n1\n0\n7\n1000500\n0\n0\n"
	replyPlain = "5\n\n9-0\n|3|||1000000|S|m9||k=v\n"
	replyUnit  = "0\n1\ns:x\n9-0\n2,1,0\n\ns:x|3|||1000000|S|m9||k=v\n"
)

func TestTheReplyOfATurn(t *testing.T) {
	r, settle, order := reading()
	rep, rebuild, err := r.read(replyHead+"1\n2 LOST\n\n1\n"+replyUnit, settle, order)
	if err != nil || rebuild {
		t.Fatal(rebuild, err)
	}
	if !rep.Again || rep.Alone || rep.Off || rep.Waiting != 7 || rep.Now.UnixMilli() != 1_000_000 || rep.NextDue.UnixMilli() != 1_000_500 {
		t.Errorf("got %+v", rep)
	}
	if rep.Results[0].Consequence != broker.Committed || rep.Results[1].Consequence != broker.Lost || !errors.Is(rep.Results[1].Err, broker.ErrLockLost) {
		t.Errorf("got results %+v", rep.Results)
	}
	if len(rep.Units) != 1 || rep.Units[0].Group != "s:x" || len(rep.Units[0].Messages) != 1 {
		t.Fatalf("got units %+v", rep.Units)
	}
	m := rep.Units[0].Messages[0]
	if string(m.Body) != "a\nb" || m.DeliveryCount != 2 || m.PoisonCount != 1 || m.SessionID != "x" || m.Status != broker.StatusLocked || m.Properties["k"] != "v" {
		t.Errorf("got %+v", m)
	}
	if len(r.held) != 1 || r.held[3] == nil || r.runs["s:x"] != 4 {
		t.Errorf("got held %v, runs %v; want unit 3 alone, and a run of 4", r.held, r.runs)
	}
}

func TestTheShortFormOfAPlainMessage(t *testing.T) {
	r, settle, order := reading()
	rep, _, err := r.read(replyHead+"0\n\n1\n"+replyPlain, settle, order)
	if err != nil || len(rep.Units) != 1 {
		t.Fatalf("got %+v, %v", rep, err)
	}
	u := rep.Units[0]
	m := u.Messages[0]
	if u.Slot != 5 || u.Group != "" || string(m.Body) != "a\nb" || m.SequenceNumber != 9 || m.MessageID != "m9" || m.Status != broker.StatusLocked {
		t.Errorf("got %+v", u)
	}
	if got := string(appendRecord(nil, u)); got != "5 9-0 \n" || r.held[u.ID].bytes != 3 {
		t.Errorf("got record %q of %d bytes", got, r.held[u.ID].bytes)
	}
}

func TestATornReplyIsAnError(t *testing.T) {
	whole := replyHead + "1\n2 LOST\n\n1\n" + replyUnit
	for _, whole := range []string{whole, replyHead + "0\n\n1\n" + replyPlain} {
		for n := range len(whole) {
			r, settle, order := reading()
			if _, _, err := r.read(whole[:n], settle, order); !errors.Is(err, broker.ErrCorrupt) {
				t.Errorf("%d of %d bytes: got %v, want %v", n, len(whole), err, broker.ErrCorrupt)
			}
		}
	}
	for what, s := range map[string]string{
		"a negative number of units":    replyHead + "0\n\n-1\n",
		"more units than bytes":         replyHead + "0\n\n99999999999\n",
		"more results than bytes":       replyHead + "9999999999\n\n0\n",
		"a negative number of messages": replyHead + "0\n\n1\n0\n-1\ns:x\n",
		"more messages than bytes":      replyHead + "0\n\n1\n0\n9999999999\ns:x\n",
		"more messages than bodies":     strings.Replace(whole, "\n\n1\n0\n1\n", "\n\n2\n0\n1\n", 1) + replyUnit,
	} {
		r, settle, order := reading()
		if _, _, err := r.read(s, settle, order); !errors.Is(err, broker.ErrCorrupt) {
			t.Errorf("%s: got %v, want %v", what, err, broker.ErrCorrupt)
		}
	}
}

func FuzzTurnReply(f *testing.F) {
	f.Add(replyHead + "0\n\n0\n")
	f.Add(replyHead + "1\n2 LOST\n1 2\n1\n" + replyUnit)
	f.Add("OFF\n1\n0\n1\n0\n0\n1\n0\n\n1\n0\n1\n\n1-0\n\n\n|0||||S|||\n\n1\nk\n1\nv\n")
	f.Add(replyHead + "0\n\n1\n" + replyPlain)
	f.Add("NOGROUP\n1\n0\n1\n0\n0\n0\n0\n\n0\n")
	f.Fuzz(func(t *testing.T, s string) {
		r, settle, order := reading()
		rep, _, err := r.read(s, settle, order)
		if err != nil {
			return
		}
		if len(rep.Results) != len(settle) {
			t.Errorf("got %d results for %d settlements", len(rep.Results), len(settle))
		}
		for _, u := range rep.Units {
			if len(u.Messages) == 0 || r.held[u.ID] == nil || r.held[u.ID].unit != u {
				t.Errorf("unit %+v is empty or not held", u)
			}
		}
	})
}
