package main

import (
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
	"parley/cmd/runtime/config"
)

// timer is one run of dialog timer.
type timer struct {
	after, cron, zone string
	cancel            bool
	wait              time.Duration

	due time.Duration // what after says
}

func (a *app) dialogTimerCommand() *cobra.Command {
	t := timer{wait: groupWait}
	cmd := &cobra.Command{
		Use:   "timer HANDLE --after D | --cron SPEC [--time-zone Z] | --cancel",
		Short: "Set or cancel the timer of this side of a conversation",
		Long: `Set the timer of this side of a conversation, in place of the one it may have, or cancel it.

When it fires, this side receives a DialogTimer message; the other side notices nothing. With --cron it goes on firing. A timer
that was due while no host ran fires once when one starts.`,
		Args:    exactly("HANDLE"),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return t.check(cmd) },
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			if err := c.Timer(cmd.Context(), args[0], t.due, t.cron, t.zone, t.wait); err != nil {
				return err
			}
			e, err := c.Endpoint(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.object(cmd, newTimerJSON(&e), "handle", e.Handle, "timer due", e.TimerDue, "timer repeats", e.TimerCron)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&t.after, "after", "", "fire once, so long from now; 0s cancels")
	f.StringVar(&t.cron, "cron", "", "fire again and again: five fields, or six with seconds, or @hourly and the like")
	f.StringVar(&t.zone, "time-zone", "", "time zone of --cron, such as Europe/Stockholm (default UTC)")
	f.BoolVar(&t.cancel, "cancel", false, "take the timer away")
	f.Var(span{&t.wait}, "wait", "how long to wait for a reader that holds the conversation group")
	return cmd
}

// groupWait is how long a verb waits for a reader that holds the conversation group, unless --wait says otherwise.
const groupWait = 5 * time.Second

func (t *timer) check(cmd *cobra.Command) error {
	given := 0
	for _, on := range []bool{cmd.Flags().Changed("after"), cmd.Flags().Changed("cron"), t.cancel} {
		if on {
			given++
		}
	}
	switch {
	case given != 1:
		return usage("give one of --after, --cron and --cancel")
	case t.zone != "" && t.cron == "":
		return usage("--time-zone goes with --cron")
	case cmd.Flags().Changed("cron") && t.cron == "":
		return broker.ErrTimerValue.With("--cron is empty")
	case t.after == "":
		return nil
	}
	d, err := config.ParseDuration(t.after)
	if err != nil {
		return broker.ErrTimerValue.With("--after wants a duration from 0s on, such as 1.5s, 30m or 7d; has %q", t.after)
	}
	t.due = d
	return nil
}

func (a *app) dialogMoveCommand() *cobra.Command {
	var group string
	wait := groupWait
	cmd := &cobra.Command{
		Use:   "move HANDLE --to-group G",
		Short: "Move a conversation to another conversation group of the same service",
		Long: `Move a conversation to another conversation group of the same service, so that it is locked together with the conversations
there. A group that does not exist is made. The state of the old group stays with the old group.`,
		Args: exactly("HANDLE"),
		PreRunE: func(*cobra.Command, []string) error {
			if group == "" {
				return usage("--to-group is missing: a UUID")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			if err := c.Move(cmd.Context(), args[0], group, wait); err != nil {
				return err
			}
			e, err := c.Endpoint(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.object(cmd, newEndpointJSON(&e), "handle", e.Handle, "group", e.Group)
		}),
	}
	cmd.Flags().StringVar(&group, "to-group", "", "the conversation group, a UUID in lower case")
	cmd.Flags().Var(span{&wait}, "wait", "how long to wait for a reader that holds the conversation group")
	return cmd
}
