package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) auditCommand() *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "audit [QUEUE...]",
		Short: "Prove that every accepted message is in exactly one place",
		Long: `Prove that every accepted message is in exactly one place: walk all keys of each queue and of its sub-queues and compare what is
there with the counters. It is safe beside running hosts: it reads a little at a time.

A queue is right, or it has differences (each seen twice while the queue stood still), or it could not be compared, because it
changed during each of five looks. Exit 1 if a queue has differences or could not be compared, 4 if the namespace has no queues.

--repair mends what is found: counters are made to agree with the messages, locks of readers that do not exist are freed, what
nobody would deliver waits again in its place, and names of messages that are gone are dropped. A queue that changes meanwhile is
left as it is. Each repaired queue gets the event repaired.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			audit := c.audit.Audit
			if repair {
				audit = c.audit.Repair
			}
			rep, err := audit(cmd.Context(), args...)
			if err != nil {
				return err
			}
			return a.printAudit(cmd, rep)
		}),
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "mend what is found, with an event for each queue that was changed")
	return cmd
}

// printAudit prints the differences, then what was looked at: a line of text, or as JSON the last object.
func (a *app) printAudit(cmd *cobra.Command, rep broker.AuditReport) error {
	p := a.rows(cmd, "QUEUE", "RULE", "WANT", "GOT", "OUTCOME")
	for _, d := range rep.Repaired {
		p.row(differenceRow(d, "repaired"), d.Queue, d.Rule, d.Want, d.Got, "repaired")
	}
	for _, d := range rep.Differences {
		p.row(differenceRow(d, "wrong"), d.Queue, d.Rule, d.Want, d.Got, "wrong")
	}
	if err := p.end(""); err != nil {
		return err
	}
	var err error
	if a.global.output == "json" {
		err = writeJSON(cmd.OutOrStdout(), newAuditedJSON(rep))
	} else {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), auditSummary(rep))
	}
	if err != nil {
		return err
	}
	var errs []error
	if n := len(rep.Differences); n > 0 {
		errs = append(errs, fmt.Errorf("%s between what is stored and what is counted; audit --repair mends what can be mended", plural(n, "difference")))
	}
	if n := len(rep.Unsettled); n > 0 {
		errs = append(errs, fmt.Errorf("not settled: %s changed during each look, so nothing was proved of it; audit it again when less happens there, or disable it meanwhile",
			strings.Join(rep.Unsettled, ", ")))
	}
	return errors.Join(errs...)
}

// auditSummary says in one line what was compared and what came of it.
func auditSummary(rep broker.AuditReport) string {
	outcome := "no difference"
	if n := len(rep.Differences); n > 0 {
		outcome = plural(n, "difference")
	}
	if n := len(rep.Repaired); n > 0 {
		outcome = plural(n, "difference") + " repaired, " + outcome + " left"
	}
	line := fmt.Sprintf("%s: %s, %s, %s compared", outcome, plural(int(rep.Queues), "queue"), plural(int(rep.Messages), "message"),
		plural(int(rep.Conversations), "conversation"))
	if n := len(rep.Unsettled); n > 0 {
		line += fmt.Sprintf("; %d not settled", n)
	}
	return line
}
