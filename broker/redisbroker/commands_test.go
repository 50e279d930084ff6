package redisbroker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"parley/broker"
	"parley/broker/redisbroker"
)

// repaired is a shop whose stock queue was turned off by a poison message, and the body of the event about it.
type repaired struct {
	b         *redisbroker.Broker
	near, far string
	event     struct {
		Type         string `json:"type"`
		Conversation string `json:"conversation_handle"`
		Epoch        int64  `json:"epoch"`
	}
	unit   *broker.Unit // that received the event
	reader broker.Reader
}

func poisoned(t *testing.T, b *redisbroker.Broker) *repaired {
	t.Helper()
	ctx := context.Background()
	p := &repaired{b: b}
	var defs broker.Definitions
	for _, n := range []string{"web", "stock", "repairs"} {
		defs.Queues = append(defs.Queues, broker.DefaultQueue(n, true))
		defs.Services = append(defs.Services, broker.Service{Name: "//" + n, Queue: n, Contracts: []string{broker.ContractDefault}})
	}
	defs.Notify = []broker.EventNotification{{Event: "queue_disabled", Queue: "stock", To: "//repairs"}}
	if _, err := b.Apply(ctx, defs, false); err != nil {
		t.Fatal(err)
	}
	e, err := b.Begin(ctx, broker.Dialog{From: "//web", To: "//stock"})
	if err != nil {
		t.Fatal(err)
	}
	p.near = e.Handle
	if _, err := b.SendOn(ctx, p.near, broker.Outgoing{Body: []byte("poison")}); err != nil {
		t.Fatal(err)
	}
	r := open(t, b, "stock", 1)
	units := take(t, r, 1, 1).Units
	for range 5 {
		p.far = units[0].Messages[0].Conversation
		units = take(t, r, 1, 1, broker.Settlement{Unit: units[0], Verdict: broker.VerdictRollback, FailReason: broker.ReasonHandlerError, Pause: -1}).Units
	}
	p.reader = open(t, b, "repairs", 1)
	p.unit = take(t, p.reader, 1, 1).Units[0]
	if err := json.Unmarshal(p.unit.Messages[0].Body, &p.event); err != nil || p.event.Type != "queue_disabled" || p.event.Conversation != p.far {
		t.Fatalf("the event is %s, %v", p.unit.Messages[0].Body, err)
	}
	return p
}

// commands checks effects as a host does, commits them with the event, and does the housekeeping after that.
func (p *repaired) commands(t *testing.T, effects ...broker.Effect) {
	t.Helper()
	for i := range effects {
		if err := p.b.CheckEffect(context.Background(), p.unit, &effects[i]); err != nil {
			t.Fatal(err)
		}
	}
	rep := take(t, p.reader, 0, 1, broker.Settlement{Unit: p.unit, Effects: effects})
	if rep.Results[0].Consequence != broker.Committed {
		t.Fatalf("the commands led to %+v", rep.Results[0])
	}
	p.keep(t)
}

func (p *repaired) keep(t *testing.T) {
	t.Helper()
	if _, err := p.b.Keep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (p *repaired) status(t *testing.T) broker.QueueStatus {
	t.Helper()
	q, err := p.b.Queue(context.Background(), "stock")
	if err != nil {
		t.Fatal(err)
	}
	return q.Status
}

func (p *repaired) end() broker.Effect {
	return broker.Effect{Kind: broker.EffectCommandEnd, Queue: "stock", Conversation: p.far, Code: 127, Text: "Unable to process message."}
}

func (p *repaired) enable() broker.Effect {
	return broker.Effect{Kind: broker.EffectCommandEnable, Queue: "stock", Epoch: p.event.Epoch}
}

// TestCommandsRepairAQueue: END, then ON; the message is gone before a reader can meet it, and the far side has error 127.
func TestCommandsRepairAQueue(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		p := poisoned(t, op(redisbroker.Options{}))
		p.commands(t, p.end(), p.enable())
		if s := p.status(t); s != broker.QueueActive {
			t.Errorf("the queue is %s", s)
		}
		if got := take(t, open(t, p.b, "stock", 1), 1, 1).Units; len(got) != 0 {
			t.Errorf("a reader met %+v", got[0].Messages[0])
		}
		if e, err := p.b.Endpoint(context.Background(), p.near); err != nil || e.State != broker.StateError {
			t.Errorf("the far side is %+v, %v", e, err)
		}
		clean(t, p.b)
	})
}

// TestCommandsYieldToTheOperator: a conversation that has ended is no error, and a queue that was switched since stays as it is.
func TestCommandsYieldToTheOperator(t *testing.T) {
	ctx := context.Background()
	for name, act := range map[string]struct {
		do   func(p *repaired) error
		want broker.QueueStatus
	}{
		"ended it":       {func(p *repaired) error { return p.b.End(ctx, p.far, broker.Ending{Code: 1, Text: "x"}, 0) }, broker.QueueActive},
		"disabled it":    {func(p *repaired) error { return p.b.SetStatus(ctx, "stock", broker.QueueDisabled) }, broker.QueueDisabled},
		"on and off":     {func(p *repaired) error { return onAndOff(p) }, broker.QueueOff},
		"turned it on":   {func(p *repaired) error { return p.b.SetStatus(ctx, "stock", broker.QueueActive) }, broker.QueueActive},
		"did not meddle": {func(*repaired) error { return nil }, broker.QueueActive},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
				p := poisoned(t, op(redisbroker.Options{}))
				if err := act.do(p); err != nil {
					t.Fatal(err)
				}
				p.commands(t, p.end(), p.enable())
				if s := p.status(t); s != act.want {
					t.Errorf("the queue is %s, want %s", s, act.want)
				}
				if q, err := p.b.Queue(ctx, "repairs"); err != nil || q.Counts.Transmission != 0 {
					t.Errorf("commands are left: %+v, %v", q.Counts, err)
				}
				clean(t, p.b)
			})
		})
	}
}

// onAndOff is a queue that was repaired and is off again: the event is an old one.
func onAndOff(p *repaired) error {
	if err := p.b.SetStatus(context.Background(), "stock", broker.QueueActive); err != nil {
		return err
	}
	return p.b.SetStatus(context.Background(), "stock", broker.QueueOff)
}

// TestCommandsAreChecked when they are staged.
func TestCommandsAreChecked(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		p := poisoned(t, op(redisbroker.Options{}))
		for name, c := range map[string]struct {
			change func(*broker.Effect)
			want   *broker.Error
		}{
			"an unknown queue":        {func(e *broker.Effect) { e.Queue = "none" }, broker.ErrUnknownEntity},
			"another queue's":         {func(e *broker.Effect) { e.Queue = "web" }, broker.ErrForeignConversation},
			"no handle":               {func(e *broker.Effect) { e.Conversation = "c|1" }, broker.ErrUnknownConversation},
			"code 0 with a text":      {func(e *broker.Effect) { e.Code = -1 }, broker.ErrErrorCode},
			"a timer that is none":    {func(e *broker.Effect) { *e = broker.Effect{Kind: broker.EffectTimer, Cron: "x"} }, broker.ErrTimerValue},
			"a group that is none":    {func(e *broker.Effect) { *e = broker.Effect{Kind: broker.EffectMove, Group: "a|b"} }, broker.ErrInvalid},
			"an unknown queue to run": {func(e *broker.Effect) { *e = broker.Effect{Kind: broker.EffectCommandEnable, Queue: "none"} }, broker.ErrUnknownEntity},
		} {
			e := p.end()
			c.change(&e)
			if err := p.b.CheckEffect(context.Background(), p.unit, &e); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
		}
	})
}
