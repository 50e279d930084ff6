package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) auditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "audit [QUEUE...]",
		Short: "Prove that every accepted message is in exactly one place",
		Long: `Prove that every accepted message is in exactly one place: walk all keys of each queue and compare what is there with the
counters. It is safe beside running hosts. Exit 1 if anything differs.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			found, err := c.audit.Audit(cmd.Context(), args...)
			if err != nil {
				return err
			}
			p := a.rows(cmd, "QUEUE", "RULE", "WANT", "GOT")
			for _, d := range found {
				p.row(differenceJSON(d), d.Queue, d.Rule, d.Want, d.Got)
			}
			if err := p.end("no difference"); err != nil {
				return err
			}
			if len(found) > 0 {
				return fmt.Errorf("%s between what is stored and what is counted", plural(len(found), "difference"))
			}
			return nil
		}),
	}
}
