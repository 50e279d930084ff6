package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/broker"
)

func (a *app) queueCommand() *cobra.Command {
	return group("queue", "Look at queues and switch them",
		a.queueListCommand(), a.queueShowCommand(),
		a.queueEnableCommand(), a.queueDisableCommand(),
		a.queuePurgeCommand(), a.queueDeleteCommand(),
	)
}

func (a *app) queueListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all queues with their counts",
		Args:  exactly(),
		RunE: a.action(func(cmd *cobra.Command, c *client, _ []string) error {
			infos, err := allQueues(cmd.Context(), c)
			if err != nil {
				return err
			}
			p := a.rows(cmd, "NAME", "STATUS", "READY", "LOCKED", "RETRYING", "SCHEDULED", "DEFERRED", "DEAD", "TRANSMISSION", "READERS")
			for i := range infos {
				q, n := &infos[i], infos[i].Counts
				p.row(newQueueJSON(q), q.Name, string(q.Status), n.Ready, n.Locked, n.Retrying, n.Scheduled, n.Deferred, n.DeadLetter, n.Transmission, q.Readers)
			}
			return p.end("no queues in namespace " + c.opt.namespace)
		}),
	}
}

func (a *app) queueShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show QUEUE",
		Short: "Show one queue: status, counts, settings, and what waits in transmission",
		Args:  exactly("QUEUE"),
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			q, err := c.admin.Queue(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.object(cmd, newQueueJSON(&q), queueDetail(&q)...)
		}),
	}
}

func (a *app) queueEnableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "enable QUEUE",
		Short: "Turn a queue on; its poison counters start from 0",
		Args:  exactly("QUEUE"),
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			return a.switchQueue(cmd, c, args[0], broker.QueueActive)
		}),
	}
}

func (a *app) queueDisableCommand() *cobra.Command {
	var what string
	var status broker.QueueStatus
	cmd := &cobra.Command{
		Use:   "disable QUEUE [--what all|send|receive]",
		Short: "Turn a queue off, or only sending to it or receiving from it",
		Args:  exactly("QUEUE"),
		PreRunE: func(*cobra.Command, []string) error {
			var ok bool
			status, ok = map[string]broker.QueueStatus{
				"all": broker.QueueDisabled, "send": broker.QueueSendDisabled, "receive": broker.QueueReceiveDisabled,
			}[what]
			if !ok {
				return usage("--what wants all, send or receive, has %q", what)
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			return a.switchQueue(cmd, c, args[0], status)
		}),
	}
	cmd.Flags().StringVar(&what, "what", "all", "all, send or receive")
	return cmd
}

func (a *app) switchQueue(cmd *cobra.Command, c *client, name string, s broker.QueueStatus) error {
	if err := c.admin.SetStatus(cmd.Context(), name, s); err != nil {
		return err
	}
	return a.object(cmd, statusJSON{name, string(s)}, "queue", name, "status", string(s))
}

func (a *app) queuePurgeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "purge PATH",
		Short: "Delete the messages of a queue, or of a dead-letter queue",
		Args:  exactly("PATH"),
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			n, err := c.admin.Purge(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.object(cmd, purgedJSON{args[0], n}, "path", args[0], "purged", n)
		}),
	}
}

func (a *app) queueDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete QUEUE",
		Short: "Delete a queue with its sub-queues and all their messages",
		Args:  exactly("QUEUE"),
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			if err := c.admin.DeleteQueue(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.object(cmd, statusJSON{args[0], "deleted"}, "queue", args[0], "status", "deleted")
		}),
	}
}

// queueDetail is all of one queue, for people.
func queueDetail(q *broker.QueueInfo) []any {
	n := q.Counts
	limit := acting(&q.QueueSettings)
	pairs := []any{
		"name", q.Name, "status", string(q.Status),
		"ready", n.Ready, "locked", n.Locked, "retrying", n.Retrying, "scheduled", n.Scheduled, "deferred", n.Deferred,
		"dead-letter", n.DeadLetter, "in transmission", n.Transmission, "transfer dead-letter", n.TransferDeadLetter,
		"retained", n.Retained, "total", n.Total, "bytes", q.Bytes, "entries lost", q.EntriesLost, "open conversations", q.Open, "ended conversations", q.Ended, "readers", q.Readers,
		"services", strings.Join(q.Services, ", "),
		"poison handling", onOff(q.Poison.On) + " (off after " + plural(q.Poison.Rollbacks, "rollback") + ", counted per " + q.Poison.Scope + ")",
		"max delivery count", q.MaxDelivery, "acts first", limit.Rule + " at " + plural(limit.At, "failure"),
		"retry pause", q.Retry.Initial.String() + " to " + q.Retry.Max.String(),
		"lock duration", q.LockDuration, "max message size", q.MaxMessageSize, "time to live", orForever(q.DefaultTTL),
		"expired to dead-letter", onOff(q.DeadLetterTTL), "on dead letter", q.OnDeadLetter, "auto end", onOff(q.AutoEnd),
		"durable", durableText(q.Durable),
		"retention", onOff(q.Retention), "archive", onOff(q.Archive),
	}
	if q.Parked > 0 {
		pairs = append(pairs, "parked", plural(int(q.Parked), "group")+", until their dead letters are resubmitted or purged, or their conversations end")
	}
	for _, g := range q.ParkedFirst {
		pairs = append(pairs, "  "+parkedName(&g), plural(len(g.DeadLetters), "dead letter")+" "+numbers(g.DeadLetters)+", "+plural(int(g.Waiting), "message")+" behind")
	}
	for _, t := range q.Transmit {
		status := firstOf(t.Status, "not tried yet")
		pairs = append(pairs, "waits for "+t.Target, plural(int(t.Waiting), "message")+", "+status+", next try "+cell(t.NextTry))
	}
	return pairs
}

// parkedName is a session, or a conversation group.
func parkedName(g *broker.ParkedGroup) string {
	if g.Group != "" {
		return "group " + g.Group
	}
	return "session " + g.SessionID
}

// numbers are sequence numbers, joined by commas.
func numbers(list []int64) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(text, ", ")
}
