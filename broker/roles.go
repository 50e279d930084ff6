package broker

import (
	"context"
	"time"
)

// Sender accepts messages for queues. Safe for concurrent use; concurrent sends to one queue are coalesced into one
// call to the store, and a transport retry is recognised, so an accepted message exists once.
type Sender interface {
	// Send stores msgs in queue, in order, all or none, and returns one receipt each. It returns ErrUnknownEntity,
	// ErrQueueDisabled (9617), ErrMessageSize, ErrDeadLetterSend, ErrQuota or ErrUnreachable, and then nothing is stored; or
	// ErrUnknownStored with the message ids, when there was no answer or ctx ended first (then it wraps that error too): the same ids sent
	// again by this client are recognised.
	Send(ctx context.Context, queue string, msgs ...Outgoing) ([]Receipt, error)
}

// Reader is one incarnation of a host on one queue, with slots. It receives and settles in one call.
//
// The calls of one Reader are sequential: no two at once, except Renew, which may run beside a Turn. A Reader repairs an
// unknown outcome (a lost reply) by itself, so Turn either tells what happened or fails as a whole; after an error other
// than from ctx the units it had handed out are lost to it (ErrLockLost) and it must be closed.
type Reader interface {
	// Name is the reader's name in Redis: one incarnation, never used again.
	Name() string
	// Slots is how many slots the queue granted, 1 or more.
	Slots() int
	// Turn settles what finished and receives what comes next, in one atomic step. It never waits for messages.
	Turn(ctx context.Context, req TurnRequest) (TurnReply, error)
	// Renew prolongs the reader's lease, to be called while handlers run longer than half the lease. ErrLockLost says
	// that the lease has ended: whatever runs will not commit.
	Renew(ctx context.Context) error
	// Close gives back, uncounted, everything that is still held and forgets the reader (shutdown release, G9).
	Close(ctx context.Context) error
}

// TurnRequest is what a reader asks of one turn.
type TurnRequest struct {
	Settle []Settlement // units that finished; each stands on its own feet
	Free   []int        // slot numbers that may get a unit, one entry a unit; slots that hold none come first
	Empty  int          // how many entries at the start of Free are slots that hold no unit
	Top    int          // greatest number of messages in a unit (TOP); at least 1
}

// TurnReply is what a turn did.
type TurnReply struct {
	Results []SettleResult // one for each settlement, in order
	Units   []*Unit        // handed out: every one of them may be started
	Again   bool           // more may be deliverable: call again at once
	Off     bool           // the queue is off: nothing is handed out until it is on
	Alone   bool           // a unit waits that must run alone in a slot (an earlier crash left it uncertain): offer empty slots
	Waiting int64          // messages ready on the queue after this turn
	Now     time.Time      // Redis's clock
	NextDue time.Time      // when the earliest retry, timer or scheduled message is due; zero: none
}

// ReaderOptions configures OpenReader.
type ReaderOptions struct {
	Slots    int           // slots wanted
	Limit    int           // max_queue_readers: slots of all readers of all hosts together
	Lease    time.Duration // how long the reader lives without a sign; DefaultLease when 0
	HostName string        // for people who look at Redis; free text without spaces
	NoState  bool          // do not fetch conversation state with the hand-out
}

// DefaultLease is how long a reader lives in Redis without a sign of life.
const DefaultLease = 10 * time.Second

// Bounds of a host's lease: below, healthy readers lose it to an ordinary pause of the machine; above, a dead host keeps its messages from
// everybody for longer than any lock may last (EN-4).
const (
	MinLease = time.Second
	MaxLease = 5 * time.Minute
)

// Readers opens readers.
type Readers interface {
	// OpenReader registers a reader on queue with as many of the wanted slots as the limit leaves. It returns a nil
	// Reader and no error when the limit leaves none, ErrQueueDisabled while the queue is off, ErrUnknownEntity when
	// there is no such queue.
	OpenReader(ctx context.Context, queue string, opt ReaderOptions) (Reader, error)
	// NewHandle makes the handle of a dialog that begins at queue, for EffectBegin. It makes no call.
	NewHandle(queue string) (string, error)
	// CheckEffect tells at staging time whether eff can be known to fail: unknown queue, service, contract, or a type the
	// contract does not allow. It works from what the client knows of the namespace and makes no call unless that is stale.
	CheckEffect(ctx context.Context, unit *Unit, eff *Effect) error
}

// Waker tells which queues have work.
type Waker interface {
	// Wakes sends the name of a queue whenever something became deliverable on it while readers slept, and "" when the
	// connection was lost and found again, so that anything may have been missed. It returns when ctx ends or the
	// connection is closed for good. One connection serves all queues.
	Wakes(ctx context.Context, wake func(queue string)) error
}

// RightsWatcher notices when the store takes rights away that a host needs.
type RightsWatcher interface {
	// WatchRights returns ErrRights, or ErrUnreachable for a user that is not accepted any more, when that has happened; nil when ctx ends.
	WatchRights(ctx context.Context) error
}

// Keeper does the housekeeping of a namespace. Any number of hosts may do it at once; each step is atomic.
type Keeper interface {
	// Keep makes one pass: reaps readers whose lease ended, promotes what is due (retries, timers, scheduled messages,
	// lifetimes), moves transmissions on, and repairs queues whose stream was lost. It returns what it did and when the
	// next thing is due.
	Keep(ctx context.Context) (KeepReport, error)
}

// KeepReport is what one pass of housekeeping did.
type KeepReport struct {
	Next        time.Time     // earliest known next due instant; zero: none
	DeadReaders []DeadAttempt // attempts that died with their host, one entry a message of each announced unit
	Transmitted int           // messages moved between queues
	Promoted    int           // messages and groups that became deliverable
	Repaired    []string      // queues whose stream or group was lost and recreated
}

// DeadAttempt is a delivery attempt that died with its host; the reaper emits its span (G9).
type DeadAttempt struct {
	Queue       string
	Reader      string
	Message     Message     // without a body
	Uncertain   bool        // it may not have started: several units were in the slot
	Consequence Consequence // RolledBack, DeadLettered or QueueTurned
}

// Receiver is for receivers beside the host's own readers: peek-lock with a token, or receive-and-delete.
type Receiver interface {
	// Receive takes messages of path (a queue or a sub-queue), each under a token of its own, and waits up to opt.Wait for the
	// first. An empty result is no error. Errors: ErrQueueDisabled (at once, also while waiting), ErrUnknownEntity,
	// ErrUnknownGroup, ErrUnknownConversation, ErrUnreachable.
	Receive(ctx context.Context, path string, opt ReceiveOptions) ([]Delivery, error)
	// Settle ends the delivery with that token. ErrLockLost: it was settled already, or its lock has expired.
	Settle(ctx context.Context, path, token string, s Settlement) (SettleResult, error)
	// SettleMany ends many deliveries at a cost in proportion to their number, each on its own feet: the results are in their
	// order, with ErrLockLost and the like in each. After an error there are results of the first ones only; it is unknown whether the others are settled.
	SettleMany(ctx context.Context, path string, many []TokenSettlement) ([]SettleResult, error)
	// Renew sets the lock of token to now plus the queue's lock duration and returns when it ends. ErrLockLost as above.
	Renew(ctx context.Context, path, token string) (time.Time, error)
}

// ReceiveOptions configures one receive.
type ReceiveOptions struct {
	Max          int           // greatest number of groups and plain messages; at least 1
	Top          int           // greatest number of messages of one group; at least 1. In all there are at most the greater of the two
	Wait         time.Duration // how long to wait for the first; 0: not at all
	Lock         time.Duration // lock duration; 0: the queue's
	Conversation string        // only this conversation (RC-5)
	Group        string        // only this conversation group, a UUID (RC-5)
}

// Delivery is one message under a peek-lock. Messages of one group that were received together share the lock of the group until the last of
// them is settled or its lock has expired; nothing else of the group is handed out before.
type Delivery struct {
	Token       string // a UUID that names the lock (RM-2); whoever knows it may settle (RM-8)
	LockedUntil time.Time
	Unit        *Unit // of one message
}

// TokenSettlement is what SettleMany shall do with one delivery.
type TokenSettlement struct {
	Token string
	Settlement
}

// Peeker looks without taking: no count, no lock (T-PM-11).
type Peeker interface {
	// Peek returns up to max messages of path with sequence numbers ≥ from, ascending, whatever their status.
	Peek(ctx context.Context, path string, from int64, max int) ([]Message, error)
}

// DeadLetters works on the dead-letter queue of path, which may be named by its entity or by itself.
type DeadLetters interface {
	// List returns up to max dead letters with sequence numbers ≥ from, ascending. Sequence numbers are those the
	// messages had in the entity they died in.
	List(ctx context.Context, path string, from int64, max int) ([]Message, error)
	// Resubmit puts the dead letter seq back at the tail of its queue, atomically and once, with counts reset and reason
	// and description stripped. One that holds up its group (on_dead_letter: park) comes back in its old place, in front of
	// what waits of its conversation, and the group goes on when no other holds it up. ErrUnknownMessage: it is not there (any more); ErrQueueDisabled; ErrResubmitEnded.
	Resubmit(ctx context.Context, path string, seq int64) (Receipt, error)
	// Purge deletes all messages of path in steps that each hold Redis for well under 50 ms, and returns how many.
	Purge(ctx context.Context, path string) (int64, error)
}

// Dialogs is the conversation verbs for callers outside a handler. Each call is one unit of work of its own.
type Dialogs interface {
	// Begin creates the initiator's endpoint (DG-2). Errors: 8423, 8425, 8411, 8414, ErrName.
	Begin(ctx context.Context, d Dialog) (Endpoint, error)
	// SendOn sends on the conversation of handle. Errors: 8418, 8426, 8429, 8431, 8432, 8434, 9618, ErrMessageSize.
	SendOn(ctx context.Context, handle string, m Outgoing) (Receipt, error)
	// End ends this side (EC). Errors: 8419, 8422, 8424, 8426, 8427, ErrGroupLocked after waiting for wait.
	End(ctx context.Context, handle string, e Ending, wait time.Duration) error
	// Endpoint returns one endpoint, closed ones included while they linger. ErrUnknownConversation.
	Endpoint(ctx context.Context, handle string) (Endpoint, error)
	// Endpoints calls yield for each endpoint of queue ("" : all queues) until it returns false; state "" : any state.
	Endpoints(ctx context.Context, queue, state string, yield func(Endpoint) bool) error
}

// DialogVerbs is the rest of the conversation verbs, for operators. Each waits up to wait while a reader holds the group, then
// returns ErrGroupLocked.
type DialogVerbs interface {
	// Timer arms or re-arms the timer of this side: after a duration, or by a cron spec in a zone. after 0 without a spec
	// cancels. Errors: 8426, 8458, 8410, ErrTimerValue.
	Timer(ctx context.Context, handle string, after time.Duration, cron, zone string, wait time.Duration) error
	// Move moves the conversation to the group with that UUID, creating it when it does not exist. Errors: 8426, 8438, 8439,
	// ErrParked.
	Move(ctx context.Context, handle, group string, wait time.Duration) error
	Retainer
}

// DialogInspector shows a conversation whole, for operators.
type DialogInspector interface {
	// InspectDialog returns the side of handle and, when it is known and there, the far side after it, each with up to max of
	// its messages in each place. It looks without taking, and not at one instant: a busy conversation may move meanwhile.
	// ErrUnknownConversation.
	InspectDialog(ctx context.Context, handle string, max int) ([]DialogSide, error)
}

// DialogSide is one side of a conversation with what waits for it and because of it.
type DialogSide struct {
	Endpoint
	QueueStatus    QueueStatus
	ParkedBy       []int64   // sequence numbers of the dead letters that hold up its group here (on_dead_letter: park), ascending
	Messages       []Message // that wait on this side's queue or are in a unit of work, in the order of their numbers
	Transit        []Message // that were sent from here and wait in the transmission queue, in order
	TransmitStatus string    // why the transmission to the far service waits; "": it does not, or was not tried yet
	NextTry        time.Time // of that transmission; zero when nothing waits
}

// Retainer reads what retention keeps.
type Retainer interface {
	// Retained returns the messages kept of the conversation, oldest first (RT): received ones, waiting ones, sent ones. On a
	// queue without retention these are the waiting ones. ErrUnknownConversation.
	Retained(ctx context.Context, handle string) ([]RetainedMessage, error)
}

// RetainedMessage is one row of a conversation on a queue with retention.
type RetainedMessage struct {
	Message
	RetainedStatus int // 0 received, 1 ready to receive, 3 sent (RT)
}

// Dialog is what BEGIN DIALOG takes.
type Dialog struct {
	From, To string
	Contract string        // "": ContractDefault
	Group    string        // "": a fresh group; a UUID: join it, or create it with that id (DG-5)
	Lifetime time.Duration // 0: DefaultLifetime; Forever: none
}

// Ending is what END CONVERSATION takes.
type Ending struct {
	Code    int    // 0: plain END; > 0: WITH ERROR
	Text    string // description, with Code
	Cleanup bool   // WITH CLEANUP: the far side hears nothing, ever
}
