package broker

import "time"

// Unit is one unit of work as it is handed out: messages of one conversation group, or one plain message.
type Unit struct {
	ID       uint64            // names the unit within its reader
	Slot     int               // the reader's slot that shall run it; slots run their units one after the other
	Group    string            // lock name of the group; "" for a plain message
	Messages []Message         // in receive order (G6): never empty
	State    map[string][]byte // state of the conversation group; nil when it has none
	// EndpointState is the state of the last message's conversation at hand-out, so that a send that must fail is known
	// at once; "" for plain messages and sessions.
	EndpointState State
	AutoEnd       bool // the queue ends conversations whose EndDialog or Error a handler leaves (decisions, Dialogs)
}

// Verdict is how a unit of work ended.
type Verdict uint8

// The verdicts.
const (
	VerdictCommit     Verdict = iota // consume the messages and do the effects, all or nothing
	VerdictRollback                  // put everything back, count the failure, decide what follows
	VerdictDeadLetter                // move the messages to the dead-letter queue; effects are dropped
	VerdictRelease                   // put everything back uncounted: it never reached a handler, or the host shuts down
)

// Outcome reasons of failed attempts (design section 7). They stand in front of last_error and in the span.
const (
	ReasonHandlerError      = "HandlerError"
	ReasonTrap              = "Trap"
	ReasonStackOverflow     = "StackOverflow"
	ReasonDeadlineExceeded  = "DeadlineExceeded"
	ReasonFuelExhausted     = "FuelExhausted"
	ReasonMemoryLimit       = "MemoryLimitExceeded"
	ReasonOutputLimit       = "OutputLimitExceeded"
	ReasonEffectLimit       = "EffectLimitExceeded"
	ReasonHostCallLimit     = "HostCallLimitExceeded"
	ReasonCapabilityDenied  = "CapabilityDenied"
	ReasonHostCrash         = "HostCrash"
	ReasonLeaseLost         = "LeaseLost"
	ReasonMaxDeliveryCount  = "MaxDeliveryCountExceeded"
	ReasonTTLExpired        = "TTLExpiredException"
	ReasonMalformedEnvelope = "MalformedEnvelope"
)

// Settlement ends one unit of work.
type Settlement struct {
	Unit    *Unit
	Verdict Verdict
	Effects []Effect // commit only, in the order the handler staged them

	FailReason string        // rollback: one of the outcome reasons
	FailText   string        // rollback: the error's text
	Pause      time.Duration // rollback: pause asked for by the handler; <0: the queue's own retry setting

	Reason      string // dead-letter: reason
	Description string // dead-letter: description
}

// Consequence is what a settlement led to.
type Consequence uint8

// The consequences.
const (
	Committed    Consequence = iota // consumed, effects done
	RolledBack                      // put back, at once or after a pause
	DeadLettered                    // every message of the unit went to the dead-letter queue
	QueueTurned                     // put back, and this rollback turned the queue OFF (PM-2)
	Released                        // put back uncounted
	Refused                         // a commit whose effects were refused: rolled back; Err says why
	Lost                            // the reader no longer held it: ErrLockLost, nothing was done
)

// SettleResult says what one settlement led to.
type SettleResult struct {
	Unit        *Unit
	Consequence Consequence
	Err         error // nil, or why a commit was refused or lost
}

// EffectKind says what an Effect does.
type EffectKind uint8

// The effects a handler may stage. All of a unit's effects become visible together, in its commit (G1).
const (
	EffectSend          EffectKind = iota + 1 // SEND on Conversation: Type, Properties, Body
	EffectBegin                               // BEGIN DIALOG: Conversation (made by NewHandle), From, To, Contract, Group, Lifetime
	EffectEnd                                 // END CONVERSATION: Conversation, and Code with Text for WITH ERROR
	EffectSendTo                              // send Message to Queue
	EffectTimer                               // BEGIN CONVERSATION TIMER: Conversation, After, or Cron with Zone
	EffectCancelTimer                         // cancel Conversation's timer
	EffectMove                                // MOVE CONVERSATION to Group
	EffectPutState                            // set Key of the unit's group state to Body
	EffectDeleteState                         // delete Key of the unit's group state
	EffectCommandEnd                          // after the commit, at least once: END Conversation of Queue WITH ERROR Code, Text
	EffectCommandEnable                       // after the commit: turn Queue ON if its epoch is still Epoch, so that ON happens once
	EffectDeadLetter                          // message Index of the unit becomes a dead letter with Reason and Text; the others are consumed
)

// Effect is one staged effect. Which fields count is said at its kind.
type Effect struct {
	Kind         EffectKind
	Conversation string
	Queue        string
	Message      Outgoing
	From, To     string
	Contract     string
	Group        string        // "": a fresh group
	Lifetime     time.Duration // 0: DefaultLifetime; Forever: none
	Code         int           // 0: plain END
	Text         string
	Index        int    // of a message of the unit
	Reason       string // of a dead letter
	Cleanup      bool   // END WITH CLEANUP; an administrator's verb, refused to handlers
	After        time.Duration
	Cron, Zone   string
	Epoch        int64 // of the queue, as its queue_disabled event tells it
	Key          string
	Value        []byte
}

// DefaultLifetime is the lifetime of a dialog that states none (decisions, Dialogs).
const DefaultLifetime = 7 * 24 * time.Hour

// Forever is the lifetime of a dialog that never expires.
const Forever = time.Duration(1<<63 - 1)
