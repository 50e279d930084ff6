package main

import (
	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) settleCommand() *cobra.Command {
	var reason, description string
	cmd := &cobra.Command{
		Use:   "settle PATH TOKEN complete|abandon|defer|dead-letter|renew",
		Short: "Settle a message that receive --settle none left locked, or renew its lock",
		Args:  exactly("PATH", "TOKEN", "complete|abandon|defer|dead-letter|renew"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if args[2] == settleRenew {
				return nil
			}
			_, err := settlement(args[2], reason, description)
			return err
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			path, token, verb := args[0], args[1], args[2]
			if verb == settleRenew {
				until, err := c.Renew(cmd.Context(), path, token)
				if err != nil {
					return err
				}
				return a.object(cmd, settledJSON{token, "renewed", instant(until)}, "outcome", "renewed", "locked until", until)
			}
			s, err := settlement(verb, reason, description)
			if err != nil {
				return err
			}
			res, err := c.Settle(cmd.Context(), path, token, s)
			if err == nil {
				err = res.Err
			}
			if err != nil {
				return err
			}
			j := settledJSON{LockToken: token, Outcome: outcome(res.Consequence)}
			return a.object(cmd, j, "outcome", j.Outcome)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "dead-letter reason")
	cmd.Flags().StringVar(&description, "description", "", "dead-letter description, or the error of an abandon")
	return cmd
}

// outcome is the word for what a settlement led to.
func outcome(c broker.Consequence) string {
	switch c {
	case broker.Committed:
		return "completed"
	case broker.RolledBack:
		return "abandoned"
	case broker.DeadLettered:
		return "dead_lettered"
	case broker.QueueTurned:
		return "queue_disabled"
	case broker.Released:
		return "released"
	case broker.Refused:
		return "refused"
	}
	return "lost"
}
