package broker

import (
	"errors"
	"fmt"
)

// Exit codes of the command line. Every error of the catalogue carries the one it leads to.
const (
	ExitDone        = 0 // the command did what it says
	ExitFailed      = 1 // it failed, or a limit (size, quota) refused it
	ExitUsage       = 2 // a value in a flag, a file or a module is refused
	ExitConflict    = 3 // the state of an entity forbids it
	ExitNotFound    = 4 // an entity, a handle or a sequence number is unknown
	ExitUnreachable = 5 // the broker is unreachable, or refuses the credentials
)

// Error is one entry of the catalogue. Compare with errors.Is against the Err… values: two Errors are the same when
// both Number and Reason are equal, whatever their text.
type Error struct {
	Number int    // Service Broker's error number, 0 where it has none
	Reason string // Service Bus's name, or ours where it has none
	Exit   int    // exit code of the command line
	Text   string // what happened, without the name of the entity
}

// Error returns the text with its number or reason in front.
func (e *Error) Error() string {
	if e.Number != 0 {
		return fmt.Sprintf("%d: %s", e.Number, e.Text)
	}
	return e.Reason + ": " + e.Text
}

// Is reports whether target is the same entry of the catalogue.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Number == e.Number && t.Reason == e.Reason
}

// With returns the same entry with more text: what, where and what to do.
func (e *Error) With(format string, args ...any) *Error {
	c := *e
	c.Text = e.Text + ": " + fmt.Sprintf(format, args...)
	return &c
}

// ExitCode returns the exit code err leads to: that of the catalogue's entry it wraps, else ExitFailed, and ExitDone for
// nil.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Exit
	}
	return ExitFailed
}

// Unanswered reports whether err says that the broker could not answer, rather than what it answered: it was out of reach, its call was
// given up, or what it has stored cannot be read. Such an error is nobody's failure who asked, least of all a handler's (G9).
func Unanswered(err error) bool {
	var e *Error
	if err == nil || !errors.As(err, &e) {
		return err != nil
	}
	return e.Is(ErrUnreachable) || e.Is(ErrCorrupt)
}

// The catalogue. Numbers are those of SQL Server Service Broker, reasons those of Azure Service Bus where they exist.
var (
	// ErrQueueDisabled is returned by a receive from, or an external send to, a queue that is off or disabled.
	ErrQueueDisabled = &Error{Number: 9617, Reason: "QueueDisabled", Exit: ExitConflict, Text: "the queue is off"}
	// ErrActivation is returned for a queue_activation notification of a queue that has a plugin: readers are started either from inside
	// or from outside (AC-3).
	ErrActivation = &Error{Number: 9718, Reason: "ActivationInside", Exit: ExitUsage, Text: "the queue has a plugin, which is started by itself: queue_activation is for queues without"}
	// ErrSendRetention is returned by a send from a service whose own queue is off and retains messages (RT-7).
	ErrSendRetention = &Error{Number: 9618, Reason: "QueueDisabledRetention", Exit: ExitConflict, Text: "the sender's queue is off and retains messages"}
	// ErrConversationEnded is returned by a send on an endpoint that is not SO or CO (SN-2).
	ErrConversationEnded = &Error{Number: 8429, Reason: "ConversationEnded", Exit: ExitConflict, Text: "the conversation endpoint is not in a state that can send"}
	// ErrUnknownConversation is returned for a handle that names no endpoint, or one that has ended here (8426).
	ErrUnknownConversation = &Error{Number: 8426, Reason: "ConversationNotFound", Exit: ExitNotFound, Text: "the conversation handle is not found"}
	// ErrConversationState is returned by END in a state that does not allow it (8427).
	ErrConversationState = &Error{Number: 8427, Reason: "ConversationState", Exit: ExitConflict, Text: "the conversation endpoint is not in a valid state for END CONVERSATION"}
	// ErrMoveState is returned by MOVE CONVERSATION in a state that does not allow it (DG-9).
	ErrMoveState = &Error{Number: 8438, Reason: "MoveState", Exit: ExitConflict, Text: "the conversation endpoint is not in a valid state for MOVE CONVERSATION"}
	// ErrMoveTarget is returned by MOVE CONVERSATION to a group of another service (DG-9).
	ErrMoveTarget = &Error{Number: 8439, Reason: "MoveTarget", Exit: ExitConflict, Text: "the destination conversation group is invalid"}
	// ErrUnknownGroup is returned by a receive of a conversation group that is not on the queue (RC-5).
	ErrUnknownGroup = &Error{Number: 8436, Reason: "ConversationGroupNotFound", Exit: ExitNotFound, Text: "the conversation group is not found on this queue"}
	// ErrGroupService is returned when a dialog would join a group of another service (DG-6).
	ErrGroupService = &Error{Number: 8414, Reason: "ConversationGroupService", Exit: ExitConflict, Text: "the conversation group belongs to another service"}
	// ErrGroupLocked is returned when a reader holds the group that a verb from outside would change (GL-4).
	ErrGroupLocked = &Error{Reason: "GroupLocked", Exit: ExitConflict, Text: "a reader holds the conversation group"}
	// ErrTypeNotInContract is returned by a send of a message type the contract does not list (CT-7).
	ErrTypeNotInContract = &Error{Number: 8431, Reason: "MessageTypeNotInContract", Exit: ExitUsage, Text: "the message type is not part of the contract"}
	// ErrTargetOnly is returned when an initiator sends a type that only the target may send (CT-7).
	ErrTargetOnly = &Error{Number: 8432, Reason: "TargetOnly", Exit: ExitUsage, Text: "the message type may be sent by the target only"}
	// ErrInitiatorOnly is returned when a target sends a type that only the initiator may send (CT-7).
	ErrInitiatorOnly = &Error{Number: 8434, Reason: "InitiatorOnly", Exit: ExitUsage, Text: "the message type may be sent by the initiator only"}
	// ErrContractEmpty is returned by apply for a contract without a type that the initiator may send (CT-2).
	ErrContractEmpty = &Error{Number: 8492, Reason: "ContractNotUsable", Exit: ExitUsage, Text: "a contract needs at least one message type sent by INITIATOR or ANY"}
	// ErrContractDuplicate is returned for a file whose contract lists a type twice (CT-2); a Contract cannot.
	ErrContractDuplicate = &Error{Number: 8403, Reason: "ContractDuplicate", Exit: ExitUsage, Text: "the message type occurs more than once in the contract"}
	// ErrUnknownService is returned by BEGIN DIALOG when the FROM service does not exist (DG-1).
	ErrUnknownService = &Error{Number: 8423, Reason: "ServiceNotFound", Exit: ExitNotFound, Text: "the service is not found"}
	// ErrUnknownContract is returned by BEGIN DIALOG when the contract does not exist (DG-1).
	ErrUnknownContract = &Error{Number: 8425, Reason: "ContractNotFound", Exit: ExitNotFound, Text: "the contract is not found"}
	// ErrHandleMissing is returned when a verb that needs a conversation handle gets none (SN-1).
	ErrHandleMissing = &Error{Number: 8418, Reason: "HandleMissing", Exit: ExitUsage, Text: "the conversation handle is missing"}
	// ErrLifetime is returned for a lifetime outside 1…2147483647 seconds (DG-10).
	ErrLifetime = &Error{Number: 8411, Reason: "LifetimeOutOfRange", Exit: ExitUsage, Text: "the dialog lifetime is out of range"}
	// ErrTimerBeyondLifetime is returned for a timer that would fire after the conversation's lifetime (TM-6).
	ErrTimerBeyondLifetime = &Error{Number: 8410, Reason: "TimerBeyondLifetime", Exit: ExitConflict, Text: "the conversation timer cannot be set beyond the conversation's lifetime"}
	// ErrTimerState is returned for a timer on an endpoint in DO or CD (TM-7).
	ErrTimerState = &Error{Number: 8458, Reason: "TimerState", Exit: ExitConflict, Text: "the conversation endpoint is not in a valid state for a timer"}
	// ErrTimerValue is returned for a timer that is negative, not a number, or above 2147483647 s (decisions, Timers).
	ErrTimerValue = &Error{Reason: "TimerOutOfRange", Exit: ExitUsage, Text: "the timer is out of range"}
	// ErrErrorCode is returned by END WITH ERROR with a code that is not above 0 (EC-1).
	ErrErrorCode = &Error{Number: 8419, Reason: "ErrorCodeOutOfRange", Exit: ExitUsage, Text: "the error code must be greater than 0"}
	// ErrErrorText is returned by END WITH ERROR without a description (EC-1).
	ErrErrorText = &Error{Number: 8424, Reason: "ErrorTextMissing", Exit: ExitUsage, Text: "both the error code and the description must be given"}
	// ErrErrorTextLong is returned by END WITH ERROR with a description above 3,000 characters (EC-1).
	ErrErrorTextLong = &Error{Number: 8422, Reason: "ErrorTextLong", Exit: ExitUsage, Text: "the error description may have at most 3,000 characters"}
	// ErrMessageSize is returned by a send whose body and own properties are above the queue's limit (SE-4).
	ErrMessageSize = &Error{Reason: "MessageSizeExceeded", Exit: ExitFailed, Text: "the message is larger than the queue allows"}
	// ErrQuota is returned by a send to an entity that is over its quota, or while Redis is out of memory (SE-5).
	ErrQuota = &Error{Reason: "QuotaExceeded", Exit: ExitFailed, Text: "the entity or the Redis server is full"}
	// ErrConversations is returned by a look at conversation endpoints that finds more than it was told to expect (field case 26).
	ErrConversations = &Error{Reason: "TooManyConversations", Exit: ExitFailed, Text: "more conversation endpoints are open than should be"}
	// ErrUnknownEntity is returned for a queue, topic or path that does not exist (SE-6).
	ErrUnknownEntity = &Error{Reason: "MessagingEntityNotFound", Exit: ExitNotFound, Text: "the entity is not found"}
	// ErrUnknownMessage is returned for a sequence number that names no message (ST-6).
	ErrUnknownMessage = &Error{Reason: "MessageNotFound", Exit: ExitNotFound, Text: "the message is not found"}
	// ErrLockLost is returned by a settlement whose reader or token no longer holds the unit (RM-7, G4).
	ErrLockLost = &Error{Reason: "MessageLockLost", Exit: ExitConflict, Text: "the lock is lost: the unit of work was given to somebody else or has been settled"}
	// ErrName is returned for a name that is too long or holds a reserved character or segment (EN-5).
	ErrName = &Error{Reason: "InvalidName", Exit: ExitUsage, Text: "the name is refused"}
	// ErrInvalid is returned for a setting or a flag whose value is refused.
	ErrInvalid = &Error{Reason: "InvalidValue", Exit: ExitUsage, Text: "the value is refused"}
	// ErrImmutable is returned by apply for a change of something that cannot be altered (CT-3, EN-6).
	ErrImmutable = &Error{Reason: "ImmutableProperty", Exit: ExitConflict, Text: "the property cannot be altered"}
	// ErrDeadLetterSend is returned by a send to a sub-queue path (SE-8).
	ErrDeadLetterSend = &Error{Reason: "SubQueueSend", Exit: ExitUsage, Text: "a dead-letter queue cannot be sent to"}
	// ErrDeadLetterAgain is returned by dead-lettering a message of a dead-letter queue (DL-2).
	ErrDeadLetterAgain = &Error{Reason: "DeadLetterOfDeadLetter", Exit: ExitConflict, Text: "a message of a dead-letter queue cannot be dead-lettered"}
	// ErrResubmitEnded is returned by a resubmit of a dialog message whose conversation has ended.
	ErrResubmitEnded = &Error{Reason: "ResubmitEnded", Exit: ExitConflict, Text: "the conversation of the dead letter has ended"}
	// ErrResubmitMalformed is returned by a resubmit of what was no message of ours (reason MalformedEnvelope).
	ErrResubmitMalformed = &Error{Reason: "ResubmitMalformed", Exit: ExitConflict, Text: "the dead letter is no message: others wrote it into the stream, and only its raw fields are known"}
	// ErrParked is returned for a move of a conversation that a dead letter holds up (on_dead_letter: park).
	ErrParked = &Error{Reason: "ConversationParked", Exit: ExitConflict, Text: "a dead letter holds up the conversation: resubmit it, remove it, or end the conversation"}
	// ErrNotAvailable is returned for a part of the interface that this version does not have yet.
	ErrNotAvailable = &Error{Reason: "NotAvailable", Exit: ExitUsage, Text: "this version does not have it yet"}
	// ErrForeignConversation is returned to a handler that acts on a conversation of another queue than its own.
	ErrForeignConversation = &Error{Reason: "ForeignConversation", Exit: ExitConflict, Text: "the conversation belongs to another queue than the unit of work"}
	// ErrNoState is returned for a state access of a unit of work without a conversation group.
	ErrNoState = &Error{Reason: "NoState", Exit: ExitConflict, Text: "a plain message has no state"}
	// ErrEviction is returned at connect when Redis may evict keys (decisions, Redis).
	ErrEviction = &Error{Reason: "EvictionPolicy", Exit: ExitUsage, Text: "Redis may evict keys: set maxmemory-policy noeviction, or pass --allow-eviction"}
	// ErrRights is returned at connect, and while a host runs, when the user of Redis may not run a command, use a key or use a channel
	// that Parley needs.
	ErrRights = &Error{Reason: "MissingRights", Exit: ExitUnreachable, Text: "the user of Redis lacks rights that Parley needs"}
	// ErrUnreachable is returned when Redis does not answer, or refuses the credentials.
	ErrUnreachable = &Error{Reason: "BrokerUnreachable", Exit: ExitUnreachable, Text: "the broker is unreachable"}
	// ErrUnknownStored is returned by a send of which nobody can say whether it is stored: the answer never came, or the replicas that the
	// queue wants (durable) did not confirm it in time. It names the message ids: a repeat with these is recognised, another may double.
	ErrUnknownStored = &Error{Reason: "UnknownWhetherStored", Exit: ExitFailed, Text: "it is unknown whether the message is stored"}
	// ErrReaderClosed is returned by a call on a reader that was closed.
	ErrReaderClosed = &Error{Reason: "ReaderClosed", Exit: ExitFailed, Text: "the reader is closed"}
	// ErrCorrupt is returned when a stored record cannot be decoded.
	ErrCorrupt = &Error{Reason: "MalformedEnvelope", Exit: ExitFailed, Text: "the stored record is broken"}
)
