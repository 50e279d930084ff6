package main

import (
	"math"

	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) peekCommand() *cobra.Command {
	var from int64
	var most int
	var handle string
	cmd := &cobra.Command{
		Use:     "peek PATH [--from SEQ] [--max N] [--handle H]",
		Short:   "Look at messages without taking or counting them",
		Args:    exactly("PATH"),
		PreRunE: func(*cobra.Command, []string) error { return positive("--max", most) },
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			p := a.messageRows(cmd, isDeadLetter(args[0]))
			shown, look := 0, most
			if handle != "" {
				look = math.MaxInt // those of other conversations do not count
			}
			err := pages(from, look, func(from int64, n int) ([]broker.Message, error) {
				if shown == most {
					return nil, nil
				}
				return c.Peek(cmd.Context(), args[0], from, n)
			}, func(m *broker.Message) {
				if shown < most && (handle == "" || m.Conversation == handle) {
					p.message(m, nil)
					shown++
				}
			})
			if err != nil {
				return err
			}
			return p.end("no messages on " + args[0])
		}),
	}
	cmd.Flags().Int64Var(&from, "from", 0, "first sequence number to show")
	cmd.Flags().IntVar(&most, "max", 32, "most messages to show")
	cmd.Flags().StringVar(&handle, "handle", "", "only messages of this conversation")
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
