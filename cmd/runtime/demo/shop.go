package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/broker"
	"parley/broker/sbxml"
)

// withdrawal holds a conversation that goes well.
func (d *demo) withdrawal(ctx context.Context) error {
	e, err := d.begin(ctx)
	if err != nil {
		return err
	}
	if d.grantID, err = d.sendOn(ctx, e, `{"part":"gear-7","quantity":2}`); err != nil {
		return err
	}
	reply, err := d.answer(ctx, e)
	if err != nil {
		return err
	}
	d.head("2. A workstation asked service %s for two gears, on a dialog:", stock)
	d.say("   the answer is %s", reply.Body)
	d.check("the answer", string(reply.Body), `{"part":"gear-7","granted":true,"left":8}`)
	return nil
}

// poison tells of the request that an order change has made impossible.
func (d *demo) poison(ctx context.Context) error {
	e, err := d.begin(ctx)
	if err != nil {
		return err
	}
	for _, body := range []string{`{"part":"shaft-2","obsolete":true}`, `{"part":"shaft-2","quantity":1}`} {
		if _, err := d.sendOn(ctx, e, body); err != nil {
			return err
		}
	}
	err = d.until(ctx, "the queue to go off", func() (bool, error) {
		q, err := d.b.Queue(ctx, inventory)
		return q.Status == broker.QueueOff, err
	})
	if err != nil {
		return err
	}
	// What arrives while the queue is off waits at its sender.
	late, err := d.begin(ctx)
	if err != nil {
		return err
	}
	if _, err := d.sendOn(ctx, late, `{"part":"gear-7","quantity":3}`); err != nil {
		return err
	}
	waiting, err := d.counts(ctx, stationQ)
	if err != nil {
		return err
	}
	events, err := d.events(ctx)
	if err != nil {
		return err
	}
	poison, err := d.b.Peek(ctx, inventory, 0, 10)
	if err != nil {
		return err
	}
	d.head("3. Before its withdrawal arrived, an order change made part shaft-2 obsolete. The request is valid and can never succeed:")
	for _, m := range poison {
		d.say("   rolled back %d times in a row → queue inventory is OFF, %d event; message still there: %s", m.PoisonCount, len(events), m.Body)
	}
	d.say("   %d new request waits in the transmission queue of its sender", waiting.Transmission)
	d.check("events", strings.Join(events, ","), "queue_disabled")
	d.check("messages left on the queue", len(poison), 1)
	d.check("requests in transmission", waiting.Transmission, 1)
	if len(poison) == 1 {
		d.check("rollbacks", poison[0].PoisonCount, broker.DefaultRollbacks)
		d.check("the poison message", string(poison[0].Body), `{"part":"shaft-2","quantity":1}`)
	}
	return nil
}

// clean is what an operator does: end the conversation with an error, and turn the queue on.
func (d *demo) clean(ctx context.Context) error {
	poison, err := d.b.Peek(ctx, inventory, 0, 1)
	if err != nil || len(poison) == 0 {
		return fmt.Errorf("the poison message is gone: %w", err)
	}
	end := broker.Ending{Code: 127, Text: "Unable to process message."}
	if err := d.b.End(ctx, poison[0].Conversation, end, time.Second); err != nil {
		return err
	}
	if err := d.b.SetStatus(ctx, inventory, broker.QueueActive); err != nil {
		return err
	}
	d.head("4. The operator ended that conversation with error 127 and turned the queue ON:")
	var code, reply string
	for code == "" || reply == "" {
		m, err := d.take(ctx, broker.ReceiveOptions{Max: 1, Top: 1, Wait: patience})
		if err != nil {
			return err
		}
		if m.Type != broker.TypeError {
			reply = string(m.Body)
			d.say("   the request that had waited is handled: %s", reply)
			continue
		}
		c, text, err := sbxml.Parse(m.Body)
		if err != nil {
			return err
		}
		code = fmt.Sprint(c)
		d.say("   the workstation received Error %s: %s", code, text)
	}
	if err := d.settled(ctx, inventory); err != nil {
		return err
	}
	n, err := d.counts(ctx, inventory)
	if err != nil {
		return err
	}
	d.check("the error's code", code, 127)
	d.check("the late answer", reply, `{"part":"gear-7","granted":true,"left":7}`)
	d.check("what is left on inventory", n.Total, 0)
	return nil
}

// begin begins a dialog between workstation and stock.
func (d *demo) begin(ctx context.Context) (broker.Endpoint, error) {
	return d.b.Begin(ctx, broker.Dialog{From: station, To: stock})
}

// sendOn sends on a dialog, traced, and returns the message id.
func (d *demo) sendOn(ctx context.Context, e broker.Endpoint, body string) (string, error) {
	m := broker.Outgoing{Body: []byte(body)}
	p := d.tel.Produce(stock, &m)
	r, err := d.b.SendOn(ctx, e.Handle, m)
	p.End(r, err)
	return r.MessageID, err
}

// answer receives the next message of a dialog.
func (d *demo) answer(ctx context.Context, e broker.Endpoint) (broker.Message, error) {
	return d.take(ctx, broker.ReceiveOptions{Max: 1, Top: 1, Wait: patience, Conversation: e.Handle})
}

// take receives and commits one message of the workstations.
func (d *demo) take(ctx context.Context, opt broker.ReceiveOptions) (broker.Message, error) {
	got, err := d.b.Receive(ctx, stationQ, opt)
	if err != nil {
		return broker.Message{}, err
	}
	if len(got) == 0 {
		return broker.Message{}, fmt.Errorf("no message came to %s in %v", stationQ, patience)
	}
	r, err := d.b.Settle(ctx, stationQ, got[0].Token, broker.Settlement{Unit: got[0].Unit, Verdict: broker.VerdictCommit})
	if err == nil {
		err = r.Err
	}
	return got[0].Unit.Messages[0], err
}

// events are the types of all events so far.
func (d *demo) events(ctx context.Context) ([]string, error) {
	var types []string
	err := d.b.Events(ctx, false, func(e broker.Event) bool {
		types = append(types, e.Type)
		return true
	})
	return types, err
}

// reasonOf tells dead letters apart as an operator would.
func reasonOf(d *broker.DeadLetter) string {
	if d == nil {
		return "(none)"
	}
	last, _, _ := strings.Cut(d.LastError, ":")
	if last == "" {
		return d.Reason
	}
	return d.Reason + ", last error " + last
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
