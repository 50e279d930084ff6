package broker

import "time"

// QueueStatus is the documented status of a queue.
type QueueStatus string

// The statuses of a queue. Off is set by poison handling; Disabled by an administrator; both act alike.
const (
	QueueActive          QueueStatus = "active"
	QueueOff             QueueStatus = "off"
	QueueDisabled        QueueStatus = "disabled"
	QueueSendDisabled    QueueStatus = "send_disabled"
	QueueReceiveDisabled QueueStatus = "receive_disabled"
)

// CanReceive reports whether messages may be received while the status is s.
func (s QueueStatus) CanReceive() bool { return s == QueueActive || s == QueueSendDisabled }

// CanSend reports whether messages may be stored while the status is s.
func (s QueueStatus) CanSend() bool { return s == QueueActive || s == QueueReceiveDisabled }

// Poison is the Service Broker rule of a queue (PM): consecutive rollbacks turn it OFF.
type Poison struct {
	On        bool
	Rollbacks int    // the rollback that turns the queue OFF; 5
	Scope     string // "message" (each message counts for itself) or "queue" (the literal queue-wide count)
}

// Retry is the pause between attempts.
type Retry struct {
	Initial    time.Duration // first pause; 0: at once
	Max        time.Duration // greatest pause
	Multiplier float64       // of each next pause; 2
	Jitter     float64       // 0…1: up to this share is taken off at random
}

// QueueSettings is the configuration of a queue, every default filled in.
type QueueSettings struct {
	Name           string
	Poison         Poison
	MaxDelivery    int // max_delivery_count: the failed delivery that dead-letters; ≥ 1
	Retry          Retry
	LockDuration   time.Duration // of a peek-lock; 60 s, 1 s…5 min
	Retention      bool
	Archive        bool          // with Retention: END writes the rows to the archive stream
	MaxMessageSize int           // bytes of body plus own properties; 262,144
	DefaultTTL     time.Duration // 0: forever
	DeadLetterTTL  bool          // dead_lettering_on_message_expiration
	OnDeadLetter   string        // "continue", "park" or "end" (decisions, Dead-letter in a conversation)
	AutoEnd        bool          // END on EndDialog and Error when the handler commits without (decisions, Dialogs)
	Durable        int           // replicas that confirm each send to it and each commit on it; 0: none is waited for
	PriorityAging  time.Duration // 0: off; else a waiting group gains one level each such span
}

// Defaults of queue settings: the one place they are stated.
const (
	DefaultRollbacks      = 5
	DefaultMaxDelivery    = 10
	DefaultMaxMessageSize = 256 << 10
	DefaultLockDuration   = 60 * time.Second
	DefaultRetryInitial   = time.Second // of queues that serve no service
	DefaultRetryMax       = 60 * time.Second
	DefaultMultiplier     = 2.0
)

// DefaultQueue returns the settings of a queue that states none. They depend on whether it serves a service
// (decisions, One queue, two rule sets; Retry pause).
func DefaultQueue(name string, servesService bool) QueueSettings {
	q := QueueSettings{
		Name:           name,
		Poison:         Poison{On: servesService, Rollbacks: DefaultRollbacks, Scope: "message"},
		MaxDelivery:    DefaultMaxDelivery,
		Retry:          Retry{Initial: DefaultRetryInitial, Max: DefaultRetryMax, Multiplier: DefaultMultiplier},
		LockDuration:   DefaultLockDuration,
		MaxMessageSize: DefaultMaxMessageSize,
		OnDeadLetter:   "continue",
		AutoEnd:        true,
	}
	if servesService {
		q.Retry.Initial, q.Retry.Max = 0, 0
	}
	return q
}

// MessageType is a message type and how bodies of it are validated on arrival (MT).
type MessageType struct {
	Name       string
	Validation string   // none, empty, well_formed_xml, valid_xml, well_formed_json, json_schema
	Schemas    [][]byte // of valid_xml and json_schema
}

// Contract is a set of message types, each with the side that may send it (CT).
type Contract struct {
	Name     string
	Messages map[string]Direction
}

// Direction is who may send a message type.
type Direction string

// The directions.
const (
	ByInitiator Direction = "initiator"
	ByTarget    Direction = "target"
	ByAny       Direction = "any"
)

// Service is a name that dialogs are addressed to, bound to one queue (SV).
type Service struct {
	Name      string
	Queue     string
	Contracts []string // contracts it may be a target of (SV-2)
}

// PriorityRule gives conversations a level; "" in a criterion means any (PR).
type PriorityRule struct {
	Name                    string
	Contract, Local, Remote string
	Level                   int
}

// Definitions is everything apply takes.
type Definitions struct {
	MessageTypes []MessageType
	Contracts    []Contract
	Queues       []QueueSettings
	Services     []Service
	Priorities   []PriorityRule
	Notify       []EventNotification
	Schedules    []Schedule
}

// EventNotification sends events as ordinary messages to a service.
type EventNotification struct {
	Event string // EventQueueDisabled or EventQueueActivation
	Queue string
	To    string // service name
}

// The events that can be sent to a service.
const (
	EventQueueDisabled   = "queue_disabled"   // poison handling turned the queue OFF
	EventQueueActivation = "queue_activation" // messages wait and nobody receives them: a reader is needed (AC-19)
)

// Schedule is a repeating timer on a dialog that the system owns.
type Schedule struct {
	Name, Cron, Zone, To, Type string
}

// Change is one line of an apply's plan.
type Change struct {
	Action string // create, alter, none
	Kind   string // queue, service, contract, message_type, …
	Name   string
	Detail string // what changes, with old and new values
}

// Counts are the exact counters of a queue (design section 3).
type Counts struct {
	Ready, Locked, Deferred, Scheduled, Retrying, DeadLetter, Transmission, TransferDeadLetter, Retained, Total int64
}

// QueueInfo is what queue show prints.
type QueueInfo struct {
	QueueSettings
	Status      QueueStatus
	Counts      Counts
	EntriesLost int64
	Services    []string
	Readers     int // slots of live readers, all hosts
	Bytes       int64
	Open, Ended int64 // conversation endpoints: not ended on this side, and ended ones that are still known
	Transmit    []TransmitInfo
	Parked      int64         // groups that dead letters hold up
	ParkedFirst []ParkedGroup // some of them, those with the oldest dead letters first
}

// ParkedGroup is a group that dead letters hold up (on_dead_letter: park): nothing of it is handed out until each is resubmitted, has
// left the dead-letter queue, or its conversation has ended.
type ParkedGroup struct {
	SessionID   string  // of a session
	Group       string  // conversation group id, of dialogs
	DeadLetters []int64 // their sequence numbers, ascending
	Waiting     int64   // messages in its backlog; those that nobody has read yet are not among them
}

// TransmitInfo tells what waits for one target and why (TX-6).
type TransmitInfo struct {
	Target  string // service name, or "queue:" and a queue name
	Waiting int64
	Status  string    // "" not tried yet, else the last reason
	NextTry time.Time // zero: now
}

// Event is one entry of a queue's event stream.
type Event struct {
	ID     string // stream id
	Type   string // queue_disabled, stream_lost, entries_lost, …
	Queue  string
	Time   time.Time
	Fields map[string]string
}

// Admin manages entities.
type Admin interface {
	EntityAdmin
	QueueAdmin
	EventReader
}
