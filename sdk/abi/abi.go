// Package abi is version 1 of the contract between a handler module and its host, as Go constants: the import module, the
// exports, the numbers of fields and results, and the functions with their parameters. docs/abi.md explains each of them.
//
// Numbers and names never change their meaning; later versions of Parley add new ones.
package abi

// Names of what host and guest call each other by.
const (
	Module     = "parley_v1"     // import module of every function of the table
	Handle     = "parley_handle" // exported function () -> i32 that handles one unit of work
	Memory     = "memory"        // exported linear memory that all pointers point into
	Initialize = "_initialize"   // optional export, called once before the first parley_handle
	Start      = "_start"        // export of a WASI command, the handler form without any import of ours
)

// Results of parley_handle. Any other number is a rollback.
const (
	Commit     int32 = 0 // do everything that was staged and consume the messages
	Rollback   int32 = 1 // undo everything and count a failure; fail gives the text, retry_after the pause
	DeadLetter int32 = 2 // move the messages to the dead-letter queue; dead_letter gives reason and description
)

// Text fields of a message, for message_field.
const (
	FieldMessageID    uint32 = 1  // message id
	FieldSessionID    uint32 = 2  // session id; empty without a session
	FieldType         uint32 = 3  // message type name
	FieldConversation uint32 = 4  // conversation handle; empty for a plain message
	FieldGroup        uint32 = 5  // conversation group id; empty for a plain message
	FieldService      uint32 = 6  // service the message is to; empty for a plain message
	FieldFarService   uint32 = 7  // service at the other end; empty for a plain message
	FieldContract     uint32 = 8  // contract of the conversation; empty for a plain message
	FieldValidation   uint32 = 9  // "N", "E" or "X"
	FieldKind         uint32 = 10 // "S" application, "D" EndDialog, "E" Error, "T" DialogTimer
	FieldQueue        uint32 = 11 // queue the message was received from, or is on
	FieldStatus       uint32 = 12 // where it is: locked for the messages of the unit; see docs/abi.md
)

// Numbers of a message, for message_number.
const (
	NumberSequence        uint32 = 1 // sequence number of the queue
	NumberMessageSequence uint32 = 2 // place in the conversation from 0; -1 for a plain message
	NumberPriority        uint32 = 3 // 1 (low) to 10 (high)
	NumberEnqueued        uint32 = 4 // when it was accepted, Unix milliseconds
	NumberExpires         uint32 = 5 // when it expires, Unix milliseconds; 0: never
	NumberDeliveryCount   uint32 = 6 // failed deliveries so far
	NumberAttempt         uint32 = 7 // number of this attempt at the unit of work, from 1
	NumberRollbacks       uint32 = 8 // consecutive rollbacks, which poison handling counts
	NumberRetained        uint32 = 9 // of a row of dialog_retained: 0 received, 1 not consumed yet, 3 sent; 1 for any other message
)

// FirstSeen is the number of the first message that queue_peek or dialog_retained found: they are read by the same functions
// as the messages of the unit, whose numbers start at 0.
const FirstSeen uint32 = 1 << 30

// Levels of log, the numbers of Go's slog.
const (
	LevelDebug int32 = -4
	LevelInfo  int32 = 0
	LevelWarn  int32 = 4
	LevelError int32 = 8
)
