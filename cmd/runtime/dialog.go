package main

import (
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
	"parley/cmd/runtime/config"
)

func (a *app) dialogCommand() *cobra.Command {
	return group("dialog", "Hold conversations from the command line",
		a.dialogBeginCommand(), a.dialogSendCommand(), a.dialogReceiveCommand(), a.dialogEndCommand(),
		a.dialogTimerCommand(), a.dialogMoveCommand(),
		a.dialogListCommand(), a.dialogShowCommand(), a.dialogRetainedCommand(),
	)
}

func (a *app) dialogBeginCommand() *cobra.Command {
	var d broker.Dialog
	var lifetime string
	cmd := &cobra.Command{
		Use:   "begin --from SERVICE --to SERVICE",
		Short: "Begin a conversation; it prints the handle of this side",
		Args:  exactly(),
		PreRunE: func(*cobra.Command, []string) (err error) {
			if d.From == "" || d.To == "" {
				return usage("--from and --to are both needed: the names of two services")
			}
			d.Lifetime, err = lifetimeOf(lifetime)
			return err
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, _ []string) error {
			e, err := c.Begin(cmd.Context(), d)
			if err != nil {
				return err
			}
			return a.object(cmd, newEndpointJSON(&e), "handle", e.Handle, "conversation", e.ConversationID, "group", e.Group)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&d.From, "from", "", "the service that begins")
	f.StringVar(&d.To, "to", "", "the service at the other end; it need not exist yet")
	f.StringVar(&d.Contract, "contract", "", "contract (default "+broker.ContractDefault+")")
	f.StringVar(&d.Group, "group", "", "conversation group to join, a UUID (default: a new one)")
	f.StringVar(&lifetime, "lifetime", "", "how long it may last at most, or forever (default "+broker.DefaultLifetime.String()+")")
	return cmd
}

// lifetimeOf reads --lifetime; what no dialog can have is the documented error.
func lifetimeOf(text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case "forever":
		return broker.Forever, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, broker.ErrLifetime.With("--lifetime wants a duration above 0, such as 2h or 7d, or forever; has %q", text)
	}
	return d, nil
}

func (a *app) dialogSendCommand() *cobra.Command {
	var o outgoing
	var m broker.Outgoing
	cmd := &cobra.Command{
		Use:   "send HANDLE [--body S | --body-file F | -]",
		Short: "Send a message on a conversation",
		Args:  between(1, "HANDLE", "-"),
		PreRunE: func(cmd *cobra.Command, args []string) (err error) {
			m, err = o.message(cmd, args[1:])
			return err
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			r, err := c.SendOn(cmd.Context(), args[0], m)
			if err != nil {
				return err
			}
			return a.object(cmd, receiptJSON{SequenceNumber: r.SequenceNumber, MessageID: r.MessageID},
				"sequence number", r.SequenceNumber, "message id", r.MessageID)
		}),
	}
	o.flags(cmd)
	return cmd
}

func (a *app) dialogReceiveCommand() *cobra.Command {
	var opt broker.ReceiveOptions
	var rollback bool
	cmd := &cobra.Command{
		Use:   "receive QUEUE [--handle H | --group G] [--wait D] [--rollback]",
		Short: "Receive the messages of one conversation group, as one unit of work",
		Long: `Receive up to --top messages of one conversation group as one unit of work, print them, and commit. QUEUE can be left out with
--handle.

With --rollback they are put back, which counts as a failed delivery: the fifth in a row may turn the queue off. To look
without that, use peek.`,
		Args: between(0, "QUEUE"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if opt.Top < 1 {
				return usage("--top wants a number from 1 on, has %d", opt.Top)
			}
			if len(args) == 0 && opt.Conversation == "" {
				return usage("QUEUE is missing: give it, or --handle")
			}
			if opt.Conversation != "" && opt.Group != "" {
				return usage("both --handle and --group are given: give one")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			if len(args) == 0 {
				e, err := c.Endpoint(cmd.Context(), opt.Conversation)
				if err != nil {
					return err
				}
				args = []string{e.Queue}
			}
			return a.dialogReceive(cmd, c, args[0], opt, rollback)
		}),
	}
	opt.Max = 1
	f := cmd.Flags()
	f.IntVar(&opt.Top, "top", 1, "most messages to receive")
	f.Var(span{&opt.Wait}, "wait", "how long to wait for the first message (default: not at all)")
	f.StringVar(&opt.Conversation, "handle", "", "only this conversation")
	f.StringVar(&opt.Group, "group", "", "only this conversation group, a UUID")
	f.BoolVar(&rollback, "rollback", false, "put the messages back instead of consuming them")
	return cmd
}

func (a *app) dialogReceive(cmd *cobra.Command, c *client, queue string, opt broker.ReceiveOptions, rollback bool) error {
	taken, err := c.Receive(cmd.Context(), queue, opt)
	if err != nil {
		return err
	}
	p := a.messageRows(cmd, false)
	for i := range taken {
		for j := range taken[i].Unit.Messages {
			p.message(&taken[i].Unit.Messages[j], nil)
		}
	}
	s := broker.Settlement{}
	switch {
	case p.err != nil:
		s.Verdict = broker.VerdictRelease
	case rollback:
		s.Verdict, s.Pause = broker.VerdictRollback, -1
		s.FailReason, s.FailText = broker.ReasonHandlerError, "rolled back by dialog receive --rollback"
	}
	if err := settleAll(cmd.Context(), c, queue, taken, s); err != nil {
		_ = p.end("")
		return err
	}
	return p.end("no messages on " + queue)
}

func (a *app) dialogEndCommand() *cobra.Command {
	var e broker.Ending
	var wait time.Duration
	var force bool
	cmd := &cobra.Command{
		Use:   "end HANDLE [--error CODE --description TEXT] [--cleanup --force]",
		Short: "End this side of a conversation, plainly or with an error",
		Args:  exactly("HANDLE"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			withError := cmd.Flags().Changed("error")
			switch {
			case withError && e.Code <= 0:
				return broker.ErrErrorCode.With("--error has %d", e.Code)
			case withError && e.Text == "":
				return broker.ErrErrorText.With("--error needs --description")
			case !withError && e.Text != "":
				return broker.ErrErrorText.With("--description needs --error")
			case e.Cleanup && withError:
				return usage("--cleanup and --error exclude each other: the far side hears nothing of a cleanup")
			case e.Cleanup && !force:
				return usage("--cleanup drops this side without telling the other, which then waits for ever: pass --force too")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			if err := c.End(cmd.Context(), args[0], e, wait); err != nil {
				return err
			}
			return a.object(cmd, endedJSON{args[0], true}, "ended", args[0])
		}),
	}
	f := cmd.Flags()
	f.IntVar(&e.Code, "error", 0, "end with this error code, above 0")
	f.StringVar(&e.Text, "description", "", "the error's text, at most 3,000 characters")
	f.BoolVar(&e.Cleanup, "cleanup", false, "forget this side; the far side hears nothing")
	f.BoolVar(&force, "force", false, "with --cleanup: really")
	wait = groupWait
	f.Var(span{&wait}, "wait", "how long to wait for a reader that holds the conversation group")
	return cmd
}

func (a *app) dialogListCommand() *cobra.Command {
	var queue, state string
	var most int
	cmd := &cobra.Command{
		Use:   "list [--queue Q] [--state ST] [--at-most N]",
		Short: "List conversation endpoints",
		Long: `List conversation endpoints, with --at-most N as an alert: the exit code is 1 when there are more than N. Endpoints
in state DI are those of which the far side has ended and this side has not: many of them are a handler that never ends its
conversations.`,
		Args: exactly(),
		RunE: a.action(func(cmd *cobra.Command, c *client, _ []string) error {
			p := a.rows(cmd, "HANDLE", "STATE", "QUEUE", "SERVICE", "FAR SERVICE", "WAITING", "IN TRANSMISSION", "EXPIRES")
			n := 0
			err := c.Endpoints(cmd.Context(), queue, state, func(e broker.Endpoint) bool {
				n++
				p.row(newEndpointJSON(&e), e.Handle, string(e.State), e.Queue, e.Service, e.FarService, e.Waiting, e.InTransmission, e.ExpiresAt)
				return p.err == nil
			})
			if err != nil {
				return err
			}
			if err := p.end("no conversations"); err != nil || most < 0 || n <= most {
				return err
			}
			return broker.ErrConversations.With("%d are listed, at most %d were expected; find the handler that does not end them", n, most)
		}),
		PreRunE: func(*cobra.Command, []string) error {
			if state != "" && broker.State(state).Description() == state {
				return usage("--state wants SO, CO, DI, DO, ER or CD, has %q", state)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&most, "at-most", -1, "fail when there are more than this; −1: never")
	cmd.Flags().StringVar(&queue, "queue", "", "only those of this queue")
	cmd.Flags().StringVar(&state, "state", "", "only those in this state, in two letters")
	return cmd
}
