package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
)

// messagePrinter prints messages, dead or alive.
type messagePrinter struct {
	*printer
	dead, lock bool
}

func (a *app) messageRows(cmd *cobra.Command, dead bool) *messagePrinter {
	if dead {
		return &messagePrinter{a.rows(cmd, "SEQ", "REASON", "DESCRIPTION", "SOURCE", "DELIVERIES", "DEAD SINCE", "LAST ERROR", "BODY"), true, false}
	}
	return &messagePrinter{a.rows(cmd, "SEQ", "STATUS", "TYPE", "GROUP", "DELIVERIES", "ENQUEUED", "BODY"), false, false}
}

// withLocks adds the columns of messages that stay locked.
func (p *messagePrinter) withLocks() *messagePrinter {
	p.lock = true
	p.head = append(p.head, "LOCKED UNTIL", "LOCK TOKEN")
	return p
}

// message prints m, and what is needed to settle it when d is not nil.
func (p *messagePrinter) message(m *broker.Message, d *broker.Delivery) {
	j := newMessageJSON(m)
	if d != nil {
		j.lockJSON = &lockJSON{d.Token, instant(d.LockedUntil)}
	}
	cells := []any{m.SequenceNumber, string(m.Status), shortType(m.Type), groupOf(m), m.DeliveryCount, m.EnqueuedAt, byValidation(m)}
	if p.dead {
		dead := broker.DeadLetter{}
		if m.Dead != nil {
			dead = *m.Dead
		}
		cells = []any{m.SequenceNumber, dead.Reason, preview([]byte(dead.Description)), dead.Source, m.DeliveryCount, dead.At, preview([]byte(dead.LastError)), m.Body}
	}
	if p.lock {
		until, token := time.Time{}, ""
		if d != nil {
			until, token = d.LockedUntil, d.Token
		}
		cells = append(cells, until, token)
	}
	p.row(j, cells...)
}

// groupOf is what a message is ordered by: its session or its conversation.
func groupOf(m *broker.Message) string {
	if m.SessionID != "" {
		return m.SessionID
	}
	return m.Conversation
}

// shortType leaves the namespace of the three system types out, which would fill the line.
func shortType(name string) string {
	switch name {
	case broker.TypeError:
		return "Error"
	case broker.TypeEndDialog:
		return "EndDialog"
	case broker.TypeDialogTimer:
		return "DialogTimer"
	}
	return name
}

// messageDetail is all of one message, for people.
func messageDetail(m *broker.Message) []any {
	pairs := []any{
		"sequence number", m.SequenceNumber, "status", string(m.Status), "message id", m.MessageID, "type", m.Type,
		"session", m.SessionID, "conversation", m.Conversation, "group", m.Group, "service", m.Service, "contract", m.Contract,
		"enqueued", m.EnqueuedAt, "failed deliveries", m.DeliveryCount,
	}
	if d := m.Dead; d != nil {
		pairs = append(pairs, "dead since", d.At, "reason", d.Reason, "description", d.Description, "source", d.Source, "last error", d.LastError)
		if d.Parks {
			pairs = append(pairs, "parks", "nothing of its conversation or session is handed out until it is resubmitted or purged")
		}
	}
	for _, k := range sortedKeys(m.Properties) {
		pairs = append(pairs, "property "+k, m.Properties[k])
	}
	if m.Dead == nil || m.Dead.Raw == nil {
		return append(pairs, "body", bodyText(m.Body))
	}
	for i, f := range m.Dead.Raw {
		what := "raw field %d"
		if i%2 == 1 {
			what = "raw value %d"
		}
		pairs = append(pairs, fmt.Sprintf(what, i/2+1), bodyText(f))
	}
	return pairs
}
