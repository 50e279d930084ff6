package sdk

import (
	"encoding/binary"
	"time"

	"parley/sdk/abi"
)

// Message is one message of a unit, or one that Peek or Retained found. Each method asks the host anew.
type Message struct {
	unit  *Unit
	index uint32
}

// Kind tells application messages from system messages.
type Kind string

// The kinds.
const (
	Application Kind = "S" // an application message
	EndDialog   Kind = "D" // the far side ended the conversation
	ErrorKind   Kind = "E" // the far side ended with an error, or the broker found one; see Failure in the body
	DialogTimer Kind = "T" // the conversation's timer fired
)

func (m Message) field(n uint32) string {
	s, _ := m.unit.text(func(h host, buf []byte) int32 { return h.messageField(m.index, n, buf) })
	return s
}

func (m Message) number(n uint32) int64 {
	var out [8]byte
	m.unit.call(func(h host) int32 { return h.messageNumber(m.index, n, &out) })
	return int64(binary.LittleEndian.Uint64(out[:]))
}

// ID is the message id.
func (m Message) ID() string { return m.field(abi.FieldMessageID) }

// Session is the session id; "" without one.
func (m Message) Session() string { return m.field(abi.FieldSessionID) }

// Type is the name of the message type.
func (m Message) Type() string { return m.field(abi.FieldType) }

// Group is the conversation group; "" for a plain message.
func (m Message) Group() string { return m.field(abi.FieldGroup) }

// Service is the service the message is to; "" for a plain message.
func (m Message) Service() string { return m.field(abi.FieldService) }

// FarService is the service at the other end; "" for a plain message.
func (m Message) FarService() string { return m.field(abi.FieldFarService) }

// Contract is the contract of the conversation; "" for a plain message.
func (m Message) Contract() string { return m.field(abi.FieldContract) }

// Validation is how the body was validated: "N" not at all, "E" it is empty, "X" well-formed XML.
func (m Message) Validation() string { return m.field(abi.FieldValidation) }

// Status is where the message is: locked when it is one of the unit; else ready, locked, retrying, deferred, scheduled, dead or
// retained.
func (m Message) Status() string { return m.field(abi.FieldStatus) }

// Queue is the queue the message was received from, or is on.
func (m Message) Queue() string { return m.field(abi.FieldQueue) }

// Kind tells application messages from system messages.
func (m Message) Kind() Kind { return Kind(m.field(abi.FieldKind)) }

// Sequence is the sequence number of the queue.
func (m Message) Sequence() int64 { return m.number(abi.NumberSequence) }

// MessageSequence is the place in the conversation, from 0; -1 for a plain message.
func (m Message) MessageSequence() int64 { return m.number(abi.NumberMessageSequence) }

// Priority is 1 (low) to 10 (high).
func (m Message) Priority() int { return int(m.number(abi.NumberPriority)) }

// Enqueued is when the broker accepted the message, to the millisecond.
func (m Message) Enqueued() time.Time { return time.UnixMilli(m.number(abi.NumberEnqueued)) }

// Expires is when the message expires; the zero time when never.
func (m Message) Expires() time.Time {
	ms := m.number(abi.NumberExpires)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Rollbacks is how often in a row units with the message rolled back, as poison handling counts.
func (m Message) Rollbacks() int { return int(m.number(abi.NumberRollbacks)) }

// DeliveryCount is the number of failed deliveries so far.
func (m Message) DeliveryCount() int { return int(m.number(abi.NumberDeliveryCount)) }

// Attempt is the number of this attempt at the unit, from 1.
func (m Message) Attempt() int { return int(m.number(abi.NumberAttempt)) }

// Body is the body, byte for byte; empty when there is none. It is valid until the handler returns.
func (m Message) Body() []byte {
	b, _ := m.unit.bytes(func(h host, buf []byte) int32 { return h.messageBody(m.index, buf) })
	return b
}

// Property is the value of one of the sender's own properties; "" when the message has none of that name.
func (m Message) Property(name string) string {
	s, _ := m.unit.text(func(h host, buf []byte) int32 { return h.messageProperty(m.index, name, buf) })
	return s
}

// Properties is all of the sender's own properties; nil when there are none.
func (m Message) Properties() map[string]string {
	list, _ := m.unit.bytes(func(h host, buf []byte) int32 { return h.messageProperties(m.index, buf) })
	if len(list) == 0 {
		return nil
	}
	props := make(map[string]string)
	abi.ParseProperties(list, func(name, value []byte) { props[string(name)] = string(value) })
	return props
}

// Conversation is the conversation the message belongs to, to send on or to end. A plain message has none: its methods
// return abi.ErrUnknownConversation.
func (m Message) Conversation() Conversation {
	return Conversation{m.unit, m.field(abi.FieldConversation)}
}

// Reply sends out on the conversation of m. Of out only Type, Properties and Body count.
func (m Message) Reply(out Outgoing) error { return m.Conversation().Send(out) }

// DeadLetter has m moved to the dead-letter queue when the unit commits, while its other messages are consumed and what was staged
// happens: all in one step. The last call for a message counts. What it means for the messages behind m is on_dead_letter of the
// queue. The package's DeadLetter, returned by the handler, moves all messages of the unit and drops what was staged. Reason and
// description are cut at 4,096 characters.
func (m Message) DeadLetter(reason, description string) error {
	return m.unit.do(func(h host) int32 { return h.messageDeadLetter(m.index, reason, description) })
}
