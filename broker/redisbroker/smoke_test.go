package redisbroker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"parley/broker"
	"parley/broker/redisbroker"
)

func open(t *testing.T, b *redisbroker.Broker, q string, slots int) broker.Reader {
	t.Helper()
	r, err := b.OpenReader(context.Background(), q, broker.ReaderOptions{Slots: slots, Limit: 100})
	if err != nil || r == nil {
		t.Fatalf("open reader: %v %v", r, err)
	}
	return r
}

func take(t *testing.T, r broker.Reader, n, top int, settle ...broker.Settlement) broker.TurnReply {
	t.Helper()
	req := broker.TurnRequest{Settle: settle, Top: top, Empty: n}
	for i := range n {
		req.Free = append(req.Free, i)
	}
	rep, err := r.Turn(context.Background(), req)
	for err == nil && rep.Again && len(rep.Units) == 0 {
		results := rep.Results
		req.Settle = nil
		if rep, err = r.Turn(context.Background(), req); len(rep.Results) == 0 {
			rep.Results = results
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func commits(us []*broker.Unit, effects ...broker.Effect) []broker.Settlement {
	var out []broker.Settlement
	for _, u := range us {
		out = append(out, broker.Settlement{Unit: u, Effects: effects})
	}
	return out
}

func TestPlainMessagesAreTakenOnceAndConsumed(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		ctx := context.Background()
		b := op(redisbroker.Options{})
		apply(t, b, []string{"q"}, nil)
		for i := range 5 {
			rc, err := b.Send(ctx, "q", broker.Outgoing{Body: fmt.Appendf(nil, "m%d", i)})
			if err != nil || rc[0].SequenceNumber != int64(i+1) {
				t.Fatal(rc, err)
			}
		}
		r := open(t, b, "q", 3)
		rep := take(t, r, 3, 1)
		if len(rep.Units) != 3 {
			t.Fatalf("got %d units, want 3", len(rep.Units))
		}
		clean(t, b)
		rep = take(t, r, 3, 1, commits(rep.Units)...)
		if len(rep.Units) != 2 || string(rep.Units[1].Messages[0].Body) != "m4" {
			t.Fatalf("got %v", rep.Units)
		}
		rep = take(t, r, 3, 1, commits(rep.Units)...)
		if len(rep.Units) != 0 {
			t.Fatal("more than was sent")
		}
		clean(t, b)
		if err := r.Close(ctx); err != nil {
			t.Fatal(err)
		}
		clean(t, b)
	})
}

func TestDialogOfTwoServices(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		ctx := context.Background()
		b := op(redisbroker.Options{})
		apply(t, b, []string{"a", "b"}, map[string]string{"//A": "a", "//B": "b"})
		ep, err := b.Begin(ctx, broker.Dialog{From: "//A", To: "//B"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := b.SendOn(ctx, ep.Handle, broker.Outgoing{Body: fmt.Appendf(nil, "m%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		r := open(t, b, "b", 2)
		rep := take(t, r, 2, 1)
		if len(rep.Units) != 1 || len(rep.Units[0].Messages) != 1 || string(rep.Units[0].Messages[0].Body) != "m0" {
			t.Fatalf("got %+v", rep.Units)
		}
		m := rep.Units[0].Messages[0]
		if m.Service != "//B" || m.FarService != "//A" || m.MessageSeq != 0 {
			t.Fatalf("got %+v", m)
		}
		clean(t, b)
		reply := broker.Effect{Kind: broker.EffectSend, Conversation: m.Conversation, Message: broker.Outgoing{Body: []byte("re")}}
		rep = take(t, r, 2, 2, commits(rep.Units, reply)...)
		if rep.Results[0].Err != nil {
			t.Fatal(rep.Results[0].Err)
		}
		var got []string
		for {
			for _, m := range rep.Units[0].Messages {
				got = append(got, string(m.Body))
			}
			if len(got) >= 2 {
				break
			}
			if rep = take(t, r, 2, 2, commits(rep.Units)...); len(rep.Units) != 1 {
				t.Fatalf("got %v and then %+v, want m1 and m2", got, rep.Units)
			}
		}
		if fmt.Sprint(got) != "[m1 m2]" {
			t.Fatalf("got %v, want [m1 m2]", got)
		}
		end := broker.Effect{Kind: broker.EffectEnd, Conversation: m.Conversation}
		rep = take(t, r, 2, 2, commits(rep.Units, end)...)
		if rep.Results[0].Err != nil {
			t.Fatal(rep.Results[0].Err)
		}
		clean(t, b)
		d, err := b.Receive(ctx, "a", broker.ReceiveOptions{Max: 5, Top: 5})
		if err != nil || len(d) != 2 || len(d[0].Unit.Messages) != 1 || d[1].Unit.Messages[0].Kind != broker.KindEndDialog {
			t.Fatalf("%+v %v", d, err)
		}
		if _, err := b.SendOn(ctx, ep.Handle, broker.Outgoing{}); !errors.Is(err, broker.ErrConversationEnded) {
			t.Fatalf("send in DI: %v", err)
		}
		if err := b.End(ctx, ep.Handle, broker.Ending{}, 0); !errors.Is(err, broker.ErrGroupLocked) {
			t.Fatalf("end while locked: %v", err)
		}
		if _, err := b.Settle(ctx, "a", d[0].Token, broker.Settlement{}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Settle(ctx, "a", d[0].Token, broker.Settlement{}); !errors.Is(err, broker.ErrLockLost) {
			t.Fatalf("settle twice: %v", err)
		}
		if err := b.End(ctx, ep.Handle, broker.Ending{}, 0); !errors.Is(err, broker.ErrGroupLocked) {
			t.Fatalf("end while the second is locked: %v", err)
		}
		if _, err := b.Settle(ctx, "a", d[1].Token, broker.Settlement{}); err != nil {
			t.Fatal(err)
		}
		if err := b.End(ctx, ep.Handle, broker.Ending{}, 0); err != nil {
			t.Fatal(err)
		}
		far, err := b.Endpoint(ctx, m.Conversation)
		if err != nil || far.State != broker.StateClosed {
			t.Fatalf("%+v %v", far, err)
		}
		clean(t, b)
	})
}

func TestFiveRollbacksTurnTheQueueOff(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		ctx := context.Background()
		b := op(redisbroker.Options{})
		apply(t, b, []string{"a", "b"}, map[string]string{"//A": "a", "//B": "b"})
		ep, err := b.Begin(ctx, broker.Dialog{From: "//A", To: "//B"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := b.SendOn(ctx, ep.Handle, broker.Outgoing{Body: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		r := open(t, b, "b", 1)
		rep := take(t, r, 1, 1)
		for i := 1; i <= 5; i++ {
			if len(rep.Units) != 1 || rep.Units[0].Messages[0].DeliveryCount != i-1 {
				t.Fatalf("attempt %d: %+v", i, rep)
			}
			rep = take(t, r, 1, 1, broker.Settlement{Unit: rep.Units[0], Verdict: broker.VerdictRollback, FailReason: "HandlerError", FailText: "no", Pause: -1})
			clean(t, b)
		}
		if rep.Results[0].Consequence != broker.QueueTurned || !rep.Off || len(rep.Units) != 0 {
			t.Fatalf("%+v", rep)
		}
		var events []broker.Event
		_ = b.Events(ctx, false, func(e broker.Event) bool { events = append(events, e); return true })
		if len(events) != 1 || events[0].Type != "queue_disabled" || events[0].Fields["rollbacks"] != "5" {
			t.Fatalf("%+v", events)
		}
		i, err := b.Queue(ctx, "b")
		if err != nil || i.Status != broker.QueueOff || i.Counts.Ready != 2 {
			t.Fatalf("%+v %v", i, err)
		}
	})
}
