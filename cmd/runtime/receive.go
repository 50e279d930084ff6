package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) receiveCommand() *cobra.Command {
	r := receiver{app: a}
	cmd := &cobra.Command{
		Use:   "receive PATH",
		Short: "Take messages of a queue or dead-letter queue",
		Long: `Take messages of a queue or dead-letter queue, print them, and settle them as --settle says.

A message is settled after it was printed, so that it is never lost; with --mode receive-and-delete before. With
--settle none it stays locked: settle it by its lock token with the command settle before the lock ends.`,
		Args:    exactly("PATH"),
		PreRunE: func(*cobra.Command, []string) error { return r.check() },
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			r.client, r.path = c, args[0]
			return r.run(cmd)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.mode, "mode", modePeekLock, "peek-lock or receive-and-delete")
	f.IntVar(&r.max, "max", 1, "most messages to take")
	f.Var(span{&r.wait}, "wait", "how long to wait for the first message (default: not at all)")
	f.StringVar(&r.settle, "settle", settleComplete, "what to do with them: complete, abandon, defer, dead-letter or none")
	f.StringVar(&r.reason, "reason", "", "dead-letter reason")
	f.StringVar(&r.description, "description", "", "dead-letter description, or the error of an abandon")
	return cmd
}

// Values of --mode and --settle, and of the verb of the command settle.
const (
	modePeekLock     = "peek-lock"
	modeDelete       = "receive-and-delete"
	settleComplete   = "complete"
	settleAbandon    = "abandon"
	settleDefer      = "defer"
	settleDeadLetter = "dead-letter"
	settleNone       = "none"
	settleRenew      = "renew"
)

// receiver is one run of receive.
type receiver struct {
	app                               *app
	client                            *client
	path                              string
	mode, settle, reason, description string
	max                               int
	wait                              time.Duration
}

func (r *receiver) check() error {
	if err := positive("--max", r.max); err != nil {
		return err
	}
	switch r.mode {
	case modePeekLock:
	case modeDelete:
		if r.settle != settleComplete {
			return usage("--mode receive-and-delete leaves nothing to settle: leave --settle out")
		}
	default:
		return usage("--mode wants peek-lock or receive-and-delete, has %q", r.mode)
	}
	if r.settle == settleNone {
		return nil
	}
	_, err := settlement(r.settle, r.reason, r.description)
	return err
}

// settlement is what a verb does to a delivery.
func settlement(verb, reason, description string) (broker.Settlement, error) {
	if reason != "" && verb != settleDeadLetter {
		return broker.Settlement{}, usage("--reason goes with dead-letter only")
	}
	switch verb {
	case settleComplete:
		return broker.Settlement{Verdict: broker.VerdictCommit}, nil
	case settleAbandon:
		return broker.Settlement{
			Verdict: broker.VerdictRollback, FailReason: broker.ReasonHandlerError,
			FailText: firstOf(description, "abandoned by its receiver"), Pause: -1,
		}, nil
	case settleDeadLetter:
		return broker.Settlement{Verdict: broker.VerdictDeadLetter, Reason: reason, Description: description}, nil
	case settleDefer:
		return broker.Settlement{}, notYet("defer")
	}
	return broker.Settlement{}, usage("%q is no way to settle: use complete, abandon, defer or dead-letter", verb)
}

// run takes up to max messages. Those that are gone once settled are taken a call at a time until there are no more: the
// messages of one session come one after the other. Any other settlement would bring the same messages again.
func (r *receiver) run(cmd *cobra.Command) error {
	p := r.app.messageRows(cmd, isDeadLetter(r.path))
	if r.settle == settleNone {
		p.withLocks()
	}
	again := r.settle == settleComplete || r.settle == settleDeadLetter
	wait := r.wait
	for left := r.max; left > 0; wait = 0 {
		taken, err := r.client.Receive(cmd.Context(), r.path, broker.ReceiveOptions{Max: left, Top: 1, Wait: wait})
		if err != nil {
			return errors.Join(p.end(""), err)
		}
		if err := r.handle(cmd.Context(), p, taken); err != nil {
			return errors.Join(p.end(""), err)
		}
		left -= len(taken)
		if len(taken) == 0 || !again {
			break
		}
	}
	return p.end("no messages on " + r.path)
}

// handle prints and settles, in the order of the mode.
func (r *receiver) handle(ctx context.Context, p *messagePrinter, taken []broker.Delivery) error {
	for i := range taken {
		d := &taken[i]
		if r.mode == modeDelete {
			if err := settleOne(ctx, r.client, r.path, d.Token, broker.Settlement{Unit: d.Unit}); err != nil {
				return err
			}
		}
		for j := range d.Unit.Messages {
			if r.settle == settleNone {
				p.message(&d.Unit.Messages[j], d)
			} else {
				p.message(&d.Unit.Messages[j], nil)
			}
		}
		if p.err != nil { // nobody saw it: its lock ends by itself, or at once by giving it back uncounted
			return errors.Join(p.err, settleOne(ctx, r.client, r.path, d.Token, broker.Settlement{Unit: d.Unit, Verdict: broker.VerdictRelease}))
		}
	}
	if r.mode == modeDelete || r.settle == settleNone {
		return nil
	}
	for i := range taken {
		s, err := settlement(r.settle, r.reason, r.description)
		if err != nil {
			return err
		}
		s.Unit = taken[i].Unit
		if err := settleOne(ctx, r.client, r.path, taken[i].Token, s); err != nil {
			return err
		}
	}
	return nil
}

// settleOne settles one delivery and turns a refusal into an error.
func settleOne(ctx context.Context, c *client, path, token string, s broker.Settlement) error {
	res, err := c.Settle(ctx, path, token, s)
	if err != nil {
		return err
	}
	return res.Err
}
