package broker

import "time"

// Kind tells an application message from the three system messages.
type Kind byte

// The kinds, as stored: one letter each.
const (
	KindApp         Kind = 'S' // an application message, in its place of the sequence
	KindEndDialog   Kind = 'D' // the far side ended; keeps its place in the sequence (SM-7)
	KindError       Kind = 'E' // the far side ended with an error, or the broker found one; received early (SM-5)
	KindDialogTimer Kind = 'T' // the conversation's own timer fired; received first (SM-5)
)

// Names of the built-in message types and of the built-in contract (MT-6, CT-6, SM-1).
const (
	TypeDefault     = "DEFAULT"
	TypeError       = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
	TypeEndDialog   = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
	TypeDialogTimer = "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer"
	ContractDefault = "DEFAULT"
)

// Status is where a message is. An accepted message is in exactly one place (G5).
type Status string

// The places of a message.
const (
	StatusReady     Status = "ready"      // may be received, now or when its group is free
	StatusLocked    Status = "locked"     // in a unit of work
	StatusRetrying  Status = "retrying"   // waits for its retry pause
	StatusDeferred  Status = "deferred"   // received by sequence number only
	StatusScheduled Status = "scheduled"  // waits for its enqueue time
	StatusDead      Status = "dead"       // in a dead-letter queue
	StatusRetained  Status = "retained"   // kept for audit (RT)
	StatusInTransit Status = "in_transit" // in a transmission queue
)

// Message is one message as it is peeked, received or handed to a handler.
//
// Body and Properties belong to the receiver of the Message; nothing else holds them.
type Message struct {
	Ref            string            // where the broker keeps it; opaque, meaningful to the broker only
	SequenceNumber int64             // of the entity; increasing, gap-free, given at acceptance
	MessageID      string            // the sender's, or made by the client
	SessionID      string            // "" without a session
	Kind           Kind              // application or one of the system kinds
	Type           string            // message type name; TypeDefault when the sender named none
	Conversation   string            // handle of the receiving endpoint, "" for a plain message
	Group          string            // conversation group id (a UUID) of a dialog message, "" otherwise
	MessageSeq     int64             // place in the conversation's sequence, from 0; −1 for unsequenced and plain messages
	Service        string            // the service the message is to; "" for a plain message
	FarService     string            // the service at the other end; "" for a plain message
	Contract       string            // contract of the conversation; "" for a plain message
	Validation     string            // "N", "E" or "X" (MT-2)
	Priority       int               // 1 (low) to 10 (high); 5 for plain messages
	Status         Status            // where it is
	EnqueuedAt     time.Time         // Redis's clock, millisecond resolution
	ExpiresAt      time.Time         // zero: never
	ScheduledAt    time.Time         // zero unless Status is StatusScheduled
	DeliveryCount  int               // finished failed deliveries (DC-1); +1 where the documents show it so
	PoisonCount    int               // consecutive rollbacks (PM-5)
	LastError      string            // "<OutcomeReason>: text" of the last failed attempt; only Peek and InspectDialog fill it in
	Properties     map[string]string // the sender's own, trace context included; nil when there are none
	Body           []byte            // opaque; empty and absent are the same (MT-7)
	Dead           *DeadLetter       // set in a dead-letter queue only
}

// DeadLetter says why and from where a message was dead-lettered (DL-4).
type DeadLetter struct {
	Reason      string    // a documented reason or the application's, at most MaxReasonChars characters
	Description string    // free text, at most MaxReasonChars characters
	Source      string    // path of the entity it died in (X14)
	At          time.Time // Redis's clock
	LastError   string    // "<OutcomeReason>: text" of the last failed attempt, "" when there was none
	Parks       bool      // it holds up its conversation or session (on_dead_letter: park); told by List only
	Raw         [][]byte  // of what was no message (ReasonMalformedEnvelope): name and value of each field of the entry, in order
}

// MaxReasonChars is the greatest length of a dead-letter reason, description and last error, in characters (ST-4).
const MaxReasonChars = 4096

// Outgoing is a message to be sent. The zero value of each field is its default.
type Outgoing struct {
	MessageID  string            // "": the client makes one
	SessionID  string            // "": no session
	Type       string            // "": TypeDefault
	Properties map[string]string // counted towards the size limit together with Body
	Body       []byte
	TTL        time.Duration // time to live, counted from acceptance or from the enqueue time; 0: forever
	Delay      time.Duration // becomes ready this long after acceptance; 0: at once
	At         time.Time     // becomes ready at this instant; zero: at once. Not together with Delay
}

// Size returns what the size limit counts: the body and the sender's own properties, in bytes (field case 14). Trace context is
// the system's, so a message at the limit can still be traced.
func (m *Outgoing) Size() int {
	n := len(m.Body)
	for k, v := range m.Properties {
		if k != "traceparent" && k != "tracestate" {
			n += len(k) + len(v)
		}
	}
	return n
}

// Receipt is the answer to an accepted send.
type Receipt struct {
	SequenceNumber int64
	MessageID      string
}
