package sdk

import "parley/sdk/abi"

// Peek looks at up to most (1 to 100) messages of a queue with sequence numbers from a number on, ascending, whatever their
// status, also while the queue is off. Nothing is received, locked or counted. It waits for the broker. The messages can be
// read until the next Peek or Retained. It needs the capability queue_peek.
func (u *Unit) Peek(queue string, from int64, most int) ([]Message, error) {
	if most != int(uint16(most)) {
		return nil, abi.ErrInvalid
	}
	return u.found(u.call(func(h host) int32 { return h.queuePeek(queue, from, uint32(most)) }))
}

// EndConversation ends a conversation of another queue with an error, once the unit has committed: at least once, and a
// conversation that has ended already is no error. The far side receives code and text. It needs the capability
// conversation_end.
func (u *Unit) EndConversation(queue, conversation string, code int, text string) error {
	if code != int(int32(code)) {
		return abi.ErrInvalid
	}
	return u.do(func(h host) int32 { return h.conversationEnd(queue, conversation, int32(code), text) })
}

// Enable turns another queue ON once the unit has committed and all that EndConversation asked for on that queue before is done.
// It does so only while the queue's epoch is the one of the queue_disabled event, so that it happens once. It needs the
// capability queue_enable.
func (u *Unit) Enable(queue string, epoch int64) error {
	return u.do(func(h host) int32 { return h.queueEnable(queue, epoch) })
}

// Retained is one message of what retention keeps of a conversation.
type Retained struct{ Message }

// Kept is 0 for a message that was received, 1 for one that was not consumed yet (those of this unit included), 3 for one that
// was sent.
func (r Retained) Kept() int { return int(r.number(abi.NumberRetained)) }

// Retained returns what retention keeps of the conversation, which must be one of the unit's, oldest first. What this attempt
// stages is not among it. It waits for the broker. The messages can be read until the next Peek or Retained.
func (c Conversation) Retained() ([]Retained, error) {
	messages, err := c.unit.found(c.call(func(h host) int32 { return h.dialogRetained(c.handle) }))
	if err != nil {
		return nil, err
	}
	rows := make([]Retained, len(messages))
	for i, m := range messages {
		rows[i] = Retained{m}
	}
	return rows, nil
}

// found is the messages that a look answered n for.
func (u *Unit) found(n int32) ([]Message, error) {
	if err := result(n); err != nil {
		return nil, err
	}
	messages := make([]Message, n)
	for i := range messages {
		messages[i] = Message{u, abi.FirstSeen + uint32(i)}
	}
	return messages, nil
}
