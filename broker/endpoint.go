package broker

import "time"

// State is the state of a conversation endpoint, in the documented two letters (spec ST).
type State string

// The states.
const (
	StateStartedOutbound      State = "SO" // begun, nothing sent
	StateConversing           State = "CO" // both sides may send
	StateDisconnectedInbound  State = "DI" // the far side ended; what is left can be received
	StateDisconnectedOutbound State = "DO" // this side ended, the far side has not
	StateError                State = "ER" // an Error arrived or was found; what is left can be received
	StateClosed               State = "CD" // both sides ended
)

// Description returns the documented long name of s, such as CONVERSING.
func (s State) Description() string {
	switch s {
	case StateStartedOutbound:
		return "STARTED_OUTBOUND"
	case StateConversing:
		return "CONVERSING"
	case StateDisconnectedInbound:
		return "DISCONNECTED_INBOUND"
	case StateDisconnectedOutbound:
		return "DISCONNECTED_OUTBOUND"
	case StateError:
		return "ERROR"
	case StateClosed:
		return "CLOSED"
	}
	return string(s)
}

// CanSend reports whether SEND is legal in s (SN-2).
func (s State) CanSend() bool { return s == StateStartedOutbound || s == StateConversing }

// Endpoint is one side of a conversation.
type Endpoint struct {
	Handle         string
	ConversationID string // shared by both sides (DG-4)
	Group          string // conversation group id, a UUID; "" once this side has ended
	Queue          string
	Service        string
	FarService     string
	FarHandle      string
	Contract       string
	Initiator      bool
	State          State
	Priority       int
	CreatedAt      time.Time
	ExpiresAt      time.Time // zero: never
	ClosedAt       time.Time // zero unless CD
	TimerDue       time.Time // zero: no timer armed
	TimerCron      string    // "" unless the timer repeats
	NextSend       int64     // sequence number the next message sent from here gets
	NextReceive    int64     // sequence number expected next from the far side
	Waiting        int64     // messages of this conversation that wait or are in a unit of work here
	InTransmission int64     // messages sent from here that wait in the transmission queue
}
