package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"parley/broker"
	"parley/host/guest"
)

// webhooks sends every body, one that is no JSON and one that is too dear, and lets the plugin sort them.
func (d *demo) webhooks(ctx context.Context) error {
	var err error
	if d.bodies, err = readWebhooks(); err != nil {
		return err
	}
	var msgs []broker.Outgoing
	good := 0
	for _, w := range d.bodies {
		msgs = append(msgs, broker.Outgoing{Properties: map[string]string{"event": w.event}, Body: w.body})
		if w.repository != "" {
			good++
		}
	}
	huge, err := hugePush()
	if err != nil {
		return err
	}
	msgs = append(msgs,
		broker.Outgoing{Properties: map[string]string{"event": "push"}, Body: []byte(`{"ref": "refs/heads/main", "commi`)},
		broker.Outgoing{Properties: map[string]string{"event": "push"}, Body: huge},
	)
	receipts, err := d.b.Send(ctx, hooks, msgs...)
	if err != nil {
		return err
	}
	d.dear = receipts[len(receipts)-1].SequenceNumber
	if err := d.settled(ctx, hooks); err != nil {
		return err
	}
	dead, err := d.counts(ctx, hooks)
	if err != nil {
		return err
	}
	sorted, err := d.counts(ctx, triaged)
	if err != nil {
		return err
	}
	d.head("1. %d webhook bodies, a broken one and a push of %d commits were sent to queue hooks.", len(d.bodies), commits)
	d.say("   %4d sorted: handled and sent on to queue triaged, each in one transaction", sorted.Ready)
	d.say("   %4d dead letters: without a repository, broken, or too dear (below)", dead.DeadLetter)
	d.check("messages on triaged", sorted.Ready, good)
	d.check("all of triaged", sorted.Total, good)
	d.check("dead letters of hooks", dead.DeadLetter, len(d.bodies)-good+2)
	d.check("what is left on hooks", dead.Total-dead.DeadLetter, 0)
	return nil
}

// settled waits until nothing of a queue is under way.
func (d *demo) settled(ctx context.Context, queue string) error {
	return d.until(ctx, "queue "+queue+" to be handled", func() (bool, error) {
		n, err := d.counts(ctx, queue)
		return n.Ready+n.Locked+n.Retrying == 0, err
	})
}

// deadLetters prints them by reason and last error.
func (d *demo) deadLetters(ctx context.Context) error {
	byReason := map[string]int{}
	for from := int64(0); ; {
		page, err := d.b.List(ctx, hooks, from, 100)
		if err != nil {
			return err
		}
		for i := range page {
			byReason[reasonOf(page[i].Dead)]++
			from = page[i].SequenceNumber + 1
		}
		if len(page) == 0 {
			break
		}
	}
	d.head("5. Dead letters of hooks, by reason and last error (nothing is ever lost, nothing blocks the queue):")
	for _, r := range sortedKeys(byReason) {
		d.say("   %4d %s", byReason[r], r)
	}
	lost := 0
	for _, w := range d.bodies {
		if w.repository == "" {
			lost++
		}
	}
	d.check("reasons", len(byReason), 3)
	d.check("dead letters for NoRepository", byReason["NoRepository"], lost)
	d.check("dead letters that broke the handler", byReason[broker.ReasonMaxDeliveryCount+", last error "+broker.ReasonHandlerError], 1)
	d.check("dead letters without fuel", byReason[broker.ReasonMaxDeliveryCount+", last error "+broker.ReasonFuelExhausted], 1)
	return nil
}

// resubmit gives the plugin more fuel and brings the dear message back.
func (d *demo) resubmit(ctx context.Context) error {
	before, err := d.counts(ctx, triaged)
	if err != nil {
		return err
	}
	more, err := d.load(ctx, d.triage, triagePlug, guest.Options{})
	if err != nil {
		return err
	}
	if _, err := d.host.SetRunner(hooks, more); err != nil {
		return err
	}
	r, err := d.b.Resubmit(ctx, hooks, d.dear)
	if err != nil {
		return err
	}
	if err := d.settled(ctx, hooks); err != nil {
		return err
	}
	after, err := d.counts(ctx, triaged)
	if err != nil {
		return err
	}
	left, err := d.counts(ctx, hooks)
	if err != nil {
		return err
	}
	last, err := d.lastTriaged(ctx)
	if err != nil {
		return err
	}
	d.head("6. The plugin got a higher fuel limit; dead letter %d was resubmitted as message %d and succeeded:", d.dear, r.SequenceNumber)
	d.say("   triaged %d → %d, the newest is %s", before.Ready, after.Ready, last)
	d.check("messages on triaged after the resubmit", after.Ready, before.Ready+1)
	d.check("dead letters left", left.DeadLetter, len(d.bodies)-int(before.Ready)+1)
	d.check("the newest on triaged", last, `{"event":"push","action":"","repository":"octo/import","sender":"bot"}`)
	if _, err := d.b.Resubmit(ctx, hooks, d.dear); broker.ExitCode(err) != broker.ExitNotFound {
		d.check("a second resubmit of the same", err, broker.ErrUnknownMessage)
	}
	return nil
}

// lastTriaged is the body of the newest message on triaged.
func (d *demo) lastTriaged(ctx context.Context) (string, error) {
	var body []byte
	for from := int64(0); ; {
		page, err := d.b.Peek(ctx, triaged, from, 100)
		if err != nil {
			return "", err
		}
		if len(page) == 0 {
			break
		}
		last := page[len(page)-1]
		from, body = last.SequenceNumber+1, last.Body
	}
	if !json.Valid(body) {
		return "", fmt.Errorf("the newest message on %s is no JSON: %q", triaged, body)
	}
	return string(body), nil
}
