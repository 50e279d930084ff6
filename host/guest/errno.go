package guest

import (
	"errors"

	"parley/broker"
	"parley/sdk/abi"
)

// errnos says which code a guest gets for which error of the broker. Everything else is abi.ErrRefused.
var errnos = []struct {
	err *broker.Error
	no  abi.Errno
}{
	{broker.ErrUnknownConversation, abi.ErrUnknownConversation},
	{broker.ErrForeignConversation, abi.ErrUnknownConversation},
	{broker.ErrHandleMissing, abi.ErrUnknownConversation},
	{broker.ErrConversationEnded, abi.ErrConversationState},
	{broker.ErrConversationState, abi.ErrConversationState},
	{broker.ErrTimerState, abi.ErrConversationState},
	{broker.ErrMoveState, abi.ErrConversationState},
	{broker.ErrUnknownEntity, abi.ErrUnknownQueue},
	{broker.ErrUnknownService, abi.ErrUnknownService},
	{broker.ErrUnknownContract, abi.ErrUnknownContract},
	{broker.ErrTypeNotInContract, abi.ErrType},
	{broker.ErrTargetOnly, abi.ErrType},
	{broker.ErrInitiatorOnly, abi.ErrType},
	{broker.ErrMessageSize, abi.ErrTooLarge},
	{broker.ErrNoState, abi.ErrNoState},
	{broker.ErrNotAvailable, abi.ErrNotAvailable},
	{broker.ErrInvalid, abi.ErrInvalid},
	{broker.ErrName, abi.ErrInvalid},
	{broker.ErrLifetime, abi.ErrInvalid},
	{broker.ErrTimerValue, abi.ErrInvalid},
	{broker.ErrTimerBeyondLifetime, abi.ErrInvalid},
	{broker.ErrErrorCode, abi.ErrInvalid},
	{broker.ErrErrorText, abi.ErrInvalid},
	{broker.ErrErrorTextLong, abi.ErrInvalid},
	{broker.ErrDeadLetterSend, abi.ErrInvalid},
}

func errnoOf(err error) abi.Errno {
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.no
		}
	}
	return abi.ErrRefused
}
