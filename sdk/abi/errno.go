package abi

import "strconv"

// Errno is a negative result of a function: why it did nothing. The zero value is success.
type Errno int32

// The error codes.
const (
	ErrFault               Errno = -1  // a pointer with its length lies outside the memory of the guest
	ErrIndex               Errno = -2  // there is no message or span of that number
	ErrField               Errno = -3  // there is no field of that number
	ErrNotFound            Errno = -4  // there is no property, state or config value of that name
	ErrInvalid             Errno = -5  // a value is refused: no UTF-8, out of range, not in the form asked for
	ErrNotAvailable        Errno = -6  // this version of Parley reserves the function but does not have it yet
	ErrNoState             Errno = -7  // the message is plain: without a conversation group there is no state
	ErrUnknownConversation Errno = -8  // the conversation handle names no endpoint of this queue (8426)
	ErrConversationState   Errno = -9  // the conversation is not in a state that allows it (8427, 8429, 8458)
	ErrUnknownQueue        Errno = -10 // there is no such queue or topic
	ErrUnknownService      Errno = -11 // there is no such service (8423)
	ErrUnknownContract     Errno = -12 // there is no such contract (8425)
	ErrType                Errno = -13 // the contract does not let this side send that type (8431, 8432, 8434)
	ErrTooLarge            Errno = -14 // body and properties are larger than the queue allows
	ErrDenied              Errno = -15 // the plugin has no capability for it
	ErrRefused             Errno = -16 // the broker refuses it for another reason; roll back
	ErrNoUnit              Errno = -17 // there is no unit of work: parley_handle was not called yet, or has returned
)

var errnoText = [...]string{
	1:  "ERR_FAULT: a pointer with its length lies outside the memory",
	2:  "ERR_INDEX: there is no message or span of that number",
	3:  "ERR_FIELD: there is no field of that number",
	4:  "ERR_NOT_FOUND: there is no value of that name",
	5:  "ERR_INVALID: the value is refused",
	6:  "ERR_NOT_AVAILABLE: this version does not have it yet",
	7:  "ERR_NO_STATE: a plain message has no state",
	8:  "ERR_UNKNOWN_CONVERSATION: the conversation handle is not found",
	9:  "ERR_CONVERSATION_STATE: the conversation is not in a state that allows it",
	10: "ERR_UNKNOWN_QUEUE: the queue or topic is not found",
	11: "ERR_UNKNOWN_SERVICE: the service is not found",
	12: "ERR_UNKNOWN_CONTRACT: the contract is not found",
	13: "ERR_TYPE: the contract does not allow the message type here",
	14: "ERR_TOO_LARGE: the message is larger than the queue allows",
	15: "ERR_DENIED: the plugin has no capability for it",
	16: "ERR_REFUSED: the broker refuses it",
	17: "ERR_NO_UNIT: there is no unit of work: its handler has returned, or was not called yet",
}

// Error returns the code's name and what it means.
func (e Errno) Error() string {
	if e < 0 && e >= -Errno(Errnos) {
		return errnoText[-e]
	}
	return "ABI error " + strconv.Itoa(int(e))
}

// Name returns the code's name alone, such as ERR_FAULT; "" for a number that is no code.
func (e Errno) Name() string {
	if e >= 0 || e < -Errno(Errnos) {
		return ""
	}
	text := errnoText[-e]
	for i := range len(text) {
		if text[i] == ':' {
			return text[:i]
		}
	}
	return text
}

// Errnos is how many codes there are: they are -1 … -Errnos.
const Errnos = len(errnoText) - 1
