package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) deadletterCommand() *cobra.Command {
	return group("deadletter", "Look at dead letters and bring them back",
		a.deadletterListCommand(), a.deadletterShowCommand(), a.deadletterResubmitCommand(), a.deadletterPurgeCommand(),
		&cobra.Command{
			Use: "groups PATH", Short: "Group dead letters by what went wrong (not available yet)", Args: exactly("PATH"),
			RunE: func(*cobra.Command, []string) error { return notYet("deadletter groups") },
		},
		&cobra.Command{
			Use: "edit PATH SEQ", Short: "Change a dead letter before it is resubmitted (not available yet)", Args: exactly("PATH", "SEQ"),
			RunE: func(*cobra.Command, []string) error { return notYet("deadletter edit") },
		},
	)
}

func (a *app) deadletterListCommand() *cobra.Command {
	var from int64
	var most int
	cmd := &cobra.Command{
		Use:     "list PATH [--from SEQ] [--max N]",
		Short:   "List dead letters",
		Args:    exactly("PATH"),
		PreRunE: func(*cobra.Command, []string) error { return positive("--max", most) },
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			p := a.messageRows(cmd, true)
			err := pages(from, most, func(from int64, n int) ([]broker.Message, error) {
				return c.dead.List(cmd.Context(), args[0], from, n)
			}, func(m *broker.Message) { p.message(m, nil) })
			if err != nil {
				return err
			}
			return p.end("no dead letters on " + args[0])
		}),
	}
	cmd.Flags().Int64Var(&from, "from", 0, "first sequence number to show")
	cmd.Flags().IntVar(&most, "max", 100, "most dead letters to show")
	return cmd
}

func (a *app) deadletterShowCommand() *cobra.Command {
	var seq int64
	return &cobra.Command{
		Use:   "show PATH SEQ",
		Short: "Show all of one dead letter",
		Args:  exactly("PATH", "SEQ"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			seq, err = sequence(args[1])
			return err
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			found, err := c.dead.List(cmd.Context(), args[0], seq, 1)
			if err != nil {
				return err
			}
			if len(found) == 0 || found[0].SequenceNumber != seq {
				return broker.ErrUnknownMessage.With("dead letter %d of %s; see runtime deadletter list", seq, args[0])
			}
			return a.object(cmd, newMessageJSON(&found[0]), messageDetail(&found[0])...)
		}),
	}
}

func (a *app) deadletterResubmitCommand() *cobra.Command {
	var byGroup string
	var all, dryRun bool
	var seqs []int64
	cmd := &cobra.Command{
		Use:   "resubmit PATH SEQ...",
		Short: "Put dead letters back at the tail of their queue, each once; one that parks its conversation, in its old place",
		Args:  cobra.ArbitraryArgs,
		PreRunE: func(cmd *cobra.Command, args []string) (err error) {
			if byGroup != "" || all || dryRun {
				return notYet("resubmit with --group, --all or --dry-run; name sequence numbers")
			}
			if len(args) < 2 {
				return usage("name the path and at least one sequence number: %s", cmd.UseLine())
			}
			seqs, err = sequences(args[1:])
			return err
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			return a.resubmit(cmd, c, args[0], seqs)
		}),
	}
	cmd.Flags().StringVar(&byGroup, "group", "", "those of one group (not available yet)")
	cmd.Flags().BoolVar(&all, "all", false, "all of them (not available yet)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be resubmitted (not available yet)")
	return cmd
}

// resubmit brings back one after the other and ends at the first that is refused; those before it are done and printed.
func (a *app) resubmit(cmd *cobra.Command, c *client, path string, seqs []int64) error {
	p := a.rows(cmd, "DEAD LETTER", "NEW SEQ", "MESSAGE ID")
	for _, seq := range seqs {
		r, err := c.dead.Resubmit(cmd.Context(), path, seq)
		if err != nil {
			_ = p.end("")
			return err
		}
		p.row(receiptJSON{SequenceNumber: r.SequenceNumber, MessageID: r.MessageID, DeadLetter: seq}, seq, r.SequenceNumber, r.MessageID)
	}
	return p.end("")
}

func (a *app) deadletterPurgeCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "purge PATH --yes",
		Short: "Delete all dead letters of a queue",
		Args:  exactly("PATH"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if !yes {
				return usage("this deletes all dead letters of %s for good: pass --yes", args[0])
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			path := deadLetterPath(args[0])
			n, err := c.dead.Purge(cmd.Context(), path)
			if err != nil {
				return err
			}
			return a.object(cmd, purgedJSON{path, n}, "path", path, "purged", n)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "really delete them")
	return cmd
}

func sequences(args []string) ([]int64, error) {
	seqs := make([]int64, len(args))
	for i, text := range args {
		var err error
		if seqs[i], err = sequence(text); err != nil {
			return nil, err
		}
	}
	return seqs, nil
}

// sequence reads a sequence number.
func sequence(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, usage("a sequence number is a whole number, not %q", text)
	}
	return n, nil
}
