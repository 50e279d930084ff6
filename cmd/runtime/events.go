package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) eventsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "events [--follow]",
		Short: "Show what happened to queues, oldest first",
		Args:  exactly(),
		RunE: a.action(func(cmd *cobra.Command, c *client, _ []string) error {
			p := a.rows(cmd, "TIME", "TYPE", "QUEUE", "DETAIL")
			p.live = follow
			err := c.admin.Events(cmd.Context(), follow, func(e broker.Event) bool {
				p.row(eventJSON{e}, e.Time, e.Type, e.Queue, fieldText(e.Fields))
				return p.err == nil
			})
			// Following ends when the user says so: that is no failure.
			if err != nil && !(follow && errors.Is(err, context.Canceled)) {
				return err
			}
			if follow {
				return p.err
			}
			return p.end("no events")
		}),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with new events until interrupted")
	return cmd
}

func fieldText(fields map[string]string) string {
	var b strings.Builder
	for _, k := range sortedKeys(fields) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(k + "=" + fields[k])
	}
	return b.String()
}
