package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

Messages are settled after they were printed, together, so that none is lost; with --mode receive-and-delete before. With
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

// run takes up to max messages, also several of one session, a call at a time until there are no more. Those that are put back
// are taken in one call, since another would bring the same ones again.
func (r *receiver) run(cmd *cobra.Command) error {
	p := r.app.messageRows(cmd, isDeadLetter(r.path))
	if r.settle == settleNone {
		p.withLocks()
	}
	wait := r.wait
	for left := r.max; left > 0; wait = 0 {
		n := left
		if r.settle != settleAbandon {
			n = min(left, receiveBatch)
		}
		taken, err := r.client.Receive(cmd.Context(), r.path, broker.ReceiveOptions{Max: n, Top: n, Wait: wait})
		if err != nil {
			return errors.Join(p.end(""), err)
		}
		if err := r.handle(cmd.Context(), p, taken); err != nil {
			return errors.Join(p.end(""), err)
		}
		left -= len(taken)
		if len(taken) == 0 || r.settle == settleAbandon || r.settle == settleNone && len(taken) < n {
			break
		}
	}
	return p.end("no messages on " + r.path)
}

// receiveBatch is how many messages are taken and settled at once: what waits to be printed does not wait long under its lock.
const receiveBatch = 250

// handle prints and settles, in the order of the mode.
func (r *receiver) handle(ctx context.Context, p *messagePrinter, taken []broker.Delivery) error {
	if r.mode == modeDelete {
		if err := settleAll(ctx, r.client, r.path, taken, broker.Settlement{}); err != nil {
			return err
		}
	}
	for i := range taken {
		d := &taken[i]
		for j := range d.Unit.Messages {
			if r.settle == settleNone {
				p.message(&d.Unit.Messages[j], d)
			} else {
				p.message(&d.Unit.Messages[j], nil)
			}
		}
		if p.err != nil { // nobody saw these: their locks end by themselves, or at once by giving them back uncounted
			return errors.Join(p.err, settleAll(ctx, r.client, r.path, taken[i:], broker.Settlement{Verdict: broker.VerdictRelease}))
		}
	}
	if r.mode == modeDelete || r.settle == settleNone {
		return nil
	}
	s, err := settlement(r.settle, r.reason, r.description)
	if err != nil {
		return err
	}
	return settleAll(ctx, r.client, r.path, taken, s)
}

// settleAll settles all deliveries alike, in one call, and turns refusals into one error.
func settleAll(ctx context.Context, c *client, path string, all []broker.Delivery, s broker.Settlement) error {
	if len(all) == 0 {
		return nil
	}
	many := make([]broker.TokenSettlement, len(all))
	for i := range all {
		s.Unit = all[i].Unit
		many[i] = broker.TokenSettlement{Token: all[i].Token, Settlement: s}
	}
	res, err := c.SettleMany(ctx, path, many)
	failed := 0
	for i := range res {
		if res[i].Err != nil {
			failed++
			err = cmp.Or(err, res[i].Err)
		}
	}
	if failed > 0 && len(all) > 1 {
		return fmt.Errorf("%d of %d messages were not settled: %w", failed, len(all), err)
	}
	return err
}
