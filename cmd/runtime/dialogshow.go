package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/broker"
)

// shownMessages is how many messages of each place dialog show shows: a conversation is one screen.
const shownMessages = 5

func (a *app) dialogShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show HANDLE",
		Short: "Show a conversation whole: both sides, what waits where and why",
		Args:  exactly("HANDLE"),
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			sides, err := c.InspectDialog(cmd.Context(), args[0], shownMessages)
			if err != nil {
				return err
			}
			j := newDialogJSON(sides)
			near := &sides[0]
			pairs := []any{"conversation", near.ConversationID, "contract", near.Contract, "created", near.CreatedAt, "expires", orNever(near.ExpiresAt)}
			for i := range sides {
				pairs = append(pairs, sidePairs([]string{"THIS SIDE", "FAR SIDE"}[i], &sides[i])...)
			}
			if len(sides) == 1 {
				pairs = append(pairs, "FAR SIDE", near.FarService+": nothing of it is here (not begun there yet, or gone)")
			}
			if j.Attempts > 0 || j.LastError != "" {
				pairs = append(pairs, "failed attempts", j.Attempts, "last error", j.LastError)
			}
			return a.object(cmd, j, append(pairs, "trace id", j.TraceID)...)
		}),
	}
}

// sidePairs is one side, a line a fact.
func sidePairs(title string, s *broker.DialogSide) []any {
	role := "target"
	if s.Initiator {
		role = "initiator"
	}
	pairs := []any{
		title, fmt.Sprintf("%s, the %s, on queue %s (%s)", s.Service, role, s.Queue, s.QueueStatus),
		"  handle", s.Handle, "  group", s.Group, "  state", string(s.State) + " " + s.State.Description(), "  priority", s.Priority,
	}
	if len(s.ParkedBy) > 0 {
		pairs = append(pairs, "  parked", "until "+plural(len(s.ParkedBy), "dead letter")+" "+numbers(s.ParkedBy)+" of queue "+s.Queue+" is dealt with, or the conversation ends")
	}
	if !s.ClosedAt.IsZero() {
		pairs = append(pairs, "  closed", s.ClosedAt)
	}
	if !s.TimerDue.IsZero() {
		pairs = append(pairs, "  timer due", s.TimerDue, "  timer repeats", s.TimerCron)
	}
	pairs = append(pairs, "  sent, received", fmt.Sprintf("%d, %d", s.NextSend, s.NextReceive), "  waiting here", s.Waiting)
	pairs = append(pairs, messagePairs(s.Messages, s.Waiting)...)
	pairs = append(pairs, "  in transmission", s.InTransmission)
	if s.InTransmission > 0 {
		status := s.TransmitStatus
		if status == "" {
			status = "not tried yet"
		}
		pairs = append(pairs, "  transmission", status, "  next try", s.NextTry)
	}
	return append(pairs, messagePairs(s.Transit, s.InTransmission)...)
}

func messagePairs(messages []broker.Message, all int64) []any {
	var pairs []any
	for i := range messages {
		m := &messages[i]
		label := "    unsequenced"
		if m.MessageSeq >= 0 {
			label = fmt.Sprintf("    message %d", m.MessageSeq)
		}
		facts := []string{shortType(m.Type), string(m.Status)}
		if m.DeliveryCount > 0 {
			facts = append(facts, plural(m.DeliveryCount, "failed attempt"))
		}
		if m.LastError != "" {
			facts = append(facts, "last error "+preview([]byte(m.LastError)))
		}
		if id := traceID(m); id != "" {
			facts = append(facts, "trace "+id)
		}
		pairs = append(pairs, label, strings.Join(facts, ", "))
	}
	if more := all - int64(len(messages)); more > 0 && len(messages) > 0 {
		pairs = append(pairs, "    more", more)
	}
	return pairs
}

func (a *app) dialogRetainedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retained HANDLE",
		Short: "Show what retention keeps of a conversation, oldest first",
		Long: `Show what retention keeps of this side of a conversation, oldest first: messages that were received (status 0), that wait (1), that
were sent (3). They go when this side ends the conversation.`,
		Args: exactly("HANDLE"),
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			rows, err := c.Retained(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			p := a.rows(cmd, "STATUS", "SEQ", "MESSAGE", "TYPE", "ENQUEUED", "BODY")
			for i := range rows {
				m := &rows[i].Message
				p.row(retainedJSON{rows[i].RetainedStatus, newMessageJSON(m)},
					retainedText(rows[i].RetainedStatus), m.SequenceNumber, m.MessageSeq, shortType(m.Type), m.EnqueuedAt, byValidation(m))
			}
			return p.end("nothing is kept of " + args[0])
		}),
	}
}

func retainedText(status int) string {
	switch status {
	case 0:
		return "0 received"
	case 1:
		return "1 ready"
	case 3:
		return "3 sent"
	}
	return fmt.Sprint(status)
}

// byValidation is the body of a dialog message as its validation tells to print it: E is empty, X is text, N is anything.
func byValidation(m *broker.Message) string {
	switch {
	case m.Conversation == "":
		return preview(m.Body)
	case m.Validation == "E":
		return "Empty message."
	case m.Validation == "X":
		return oneLine(string(m.Body))
	}
	return "No validation -- binary message: " + preview(m.Body)
}
