// Command poison-handler cleans up after poison messages: it reads the event that a queue was turned off, looks at the message that
// did it, ends the message's conversation with an error, and has the queue turned on again.
package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"parley/sdk"
)

func init() { sdk.Handle(handle) }

func main() {}

// event is the body of an event notification.
type event struct {
	Type           string `json:"type"`
	Queue          string `json:"queue"`
	Reason         string `json:"reason"`
	Rollbacks      int    `json:"rollbacks"`
	SequenceNumber int64  `json:"sequence_number"`
	Conversation   string `json:"conversation_handle"`
	LastError      string `json:"last_error"`
	Epoch          int64  `json:"epoch"`
}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		if m.Kind() != sdk.Application {
			continue
		}
		var e event
		if err := json.Unmarshal(m.Body(), &e); err != nil || e.Queue == "" {
			return sdk.DeadLetter("NotAnEvent", fmt.Sprintf("the body is no event notification: %v", err))
		}
		if e.Type != "queue_disabled" {
			u.Log(sdk.Info, "nothing to do for the event "+e.Type+" of "+e.Queue)
			continue
		}
		if err := repair(u, e); err != nil {
			return err
		}
	}
	return nil
}

// repair ends the poisonous conversation and turns the queue on. Both happen after this unit has committed, in this order, so that
// no reader of the queue meets the message again; and the queue is turned on only if nobody has done it since the event.
func repair(u *sdk.Unit, e event) error {
	poison, err := find(u, e)
	if err != nil {
		return err
	}
	if poison == nil {
		u.Log(sdk.Info, "the poison message of "+e.Queue+" is gone already")
		return u.Enable(e.Queue, e.Epoch)
	}
	handle := poison.Conversation().Handle()
	if handle == "" {
		// Without a conversation there is nothing to end and nobody to tell: this is for a person, and the queue stays off.
		return sdk.DeadLetter("NoConversation", fmt.Sprintf("message %d of %s belongs to no conversation: %s", e.SequenceNumber, e.Queue, e.LastError))
	}
	u.Log(sdk.Warn, fmt.Sprintf("%s: message %d rolled back %d times (%s): %s", e.Queue, e.SequenceNumber, poison.Rollbacks(), e.LastError, show(poison)))
	if err := u.EndConversation(e.Queue, handle, code(u), text(u)); err != nil {
		return err
	}
	return u.Enable(e.Queue, e.Epoch)
}

// find looks at the message of the event without taking it. nil: it is not there any more, or was not rolled back that often.
func find(u *sdk.Unit, e event) (*sdk.Message, error) {
	found, err := u.Peek(e.Queue, e.SequenceNumber, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Sequence() != e.SequenceNumber || found[0].Rollbacks() < e.Rollbacks {
		return nil, nil
	}
	return &found[0], nil
}

// show prints a message as its validation tells to.
func show(m *sdk.Message) string {
	switch m.Validation() {
	case "E":
		return "Empty message."
	case "X":
		return string(m.Body())
	}
	return fmt.Sprintf("No validation -- binary message: %q", m.Body())
}

// code and text are what the far side is told; the documented example has 127.
func code(u *sdk.Unit) int {
	if n, err := strconv.Atoi(u.Config("error_code")); err == nil {
		return n
	}
	return 127
}

func text(u *sdk.Unit) string {
	if s := u.Config("error_text"); s != "" {
		return s
	}
	return "Unable to process message."
}
