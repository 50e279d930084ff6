package main

import (
	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) peekCommand() *cobra.Command {
	var from int64
	var most int
	cmd := &cobra.Command{
		Use:     "peek PATH [--from SEQ] [--max N]",
		Short:   "Look at messages without taking or counting them",
		Args:    exactly("PATH"),
		PreRunE: func(*cobra.Command, []string) error { return positive("--max", most) },
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			p := a.messageRows(cmd, isDeadLetter(args[0]))
			err := pages(from, most, func(from int64, n int) ([]broker.Message, error) {
				return c.Peek(cmd.Context(), args[0], from, n)
			}, func(m *broker.Message) { p.message(m, nil) })
			if err != nil {
				return err
			}
			return p.end("no messages on " + args[0])
		}),
	}
	cmd.Flags().Int64Var(&from, "from", 0, "first sequence number to show")
	cmd.Flags().IntVar(&most, "max", 32, "most messages to show")
	return cmd
}

// pageSize is how many messages one call asks for.
const pageSize = 100

// pages walks a list in ascending sequence numbers, a page a call, until most were seen or there are no more.
func pages(from int64, most int, page func(from int64, n int) ([]broker.Message, error), each func(*broker.Message)) error {
	for most > 0 {
		n := min(most, pageSize)
		msgs, err := page(from, n)
		if err != nil {
			return err
		}
		for i := range msgs {
			each(&msgs[i])
		}
		if len(msgs) < n {
			return nil
		}
		most -= len(msgs)
		from = msgs[len(msgs)-1].SequenceNumber + 1
	}
	return nil
}
