package broker

import "time"

// Snapshot is all that a broker keeps about one queue at one instant, told without the words of its store. It is what
// audit and the conformance suite look at to prove G5 and the invariants of the reader protocol. Taking one walks the
// whole queue: it is for tests and operators, never for a running host.
//
// Locks are named as in Unit.Group: "s:" and a session id, or "g:" and a conversation group id.
type Snapshot struct {
	Queue  string
	Status QueueStatus
	Now    time.Time // the broker's clock when it was taken
	Asleep bool      // a receive found nothing: whatever becomes deliverable must wake the readers

	// Messages has one row for each place a message was found in, so a message that is in two places has two rows, and
	// each row says in which. Dead letters and what waits in this queue's transmission streams are rows too. Rows of one
	// place stand in the order in which that place gives them out.
	Messages []StoredMessage

	Conversations map[string]string         // handle → lock name of its group; a handle is in it until its side has ended
	Locks         map[string]Lock           // lock name → lock; a group that is free and has nothing in its backlog has none
	Ready         []string                  // lock names of groups that are free and have a backlog, best first
	Parked        map[string][]int64        // lock name of a group that dead letters hold up → their sequence numbers
	Retry         map[string]time.Time      // lock name of a parked group, or Ref of a plain message → when its pause ends
	Readers       map[string]ReaderSnapshot // reader name → reader; peek-lock tokens are readers of their own
	Timers        map[string]time.Time      // handle → when its conversation timer is due; armed ones only

	Attempts int    // attempt records kept (counts of messages that failed before and wait for the next attempt)
	Counts   Counts // the queue's own counters, as QueueInfo has them
}

// Place is where a row of a Snapshot was found.
type Place string

// The places. The first five are those of messages that wait.
const (
	PlaceUnread    Place = "unread"    // arrived, not yet looked at by any reader
	PlaceBacklog   Place = "backlog"   // in the backlog of its group
	PlaceBack      Place = "back"      // a plain message that came back and waits to be taken again
	PlaceRetry     Place = "retry"     // its retry pause runs; a group's message stands in the backlog of its parked group all the same
	PlaceScheduled Place = "scheduled" // waits for its enqueue time
	PlaceHeld      Place = "held"      // in a unit of Holder
	PlaceDeferred  Place = "deferred"  // received by sequence number only
	PlaceDead      Place = "dead"      // in the dead-letter queue
	PlaceTransit   Place = "transit"   // in a transmission stream that leaves this queue
	PlaceTransDead Place = "transdead" // in the transfer dead-letter queue
	PlaceRetained  Place = "retained"  // kept for audit only
	PlaceAstray    Place = "astray"    // stored, but in none of the above: nobody will ever deliver it
)

// StoredMessage is one row of a Snapshot.
type StoredMessage struct {
	Message          // without a body; SequenceNumber is 0 in transit, counts are the stored ones
	Place     Place  // where it was found
	Holder    string // name of the reader, for PlaceHeld
	Target    string // where it goes, for PlaceTransit and PlaceTransDead
	OldNumber int64  // of a message that was put back in its place: the number it had first, which orders it; else 0
	Uncertain int    // attempts that may have died in it without being counted
	LockName  string // in a backlog or a unit: the lock of that group; elsewhere that of its group as of now; "" plain, or ended and unread
	Ended     bool   // its conversation has ended here: it is forgotten as soon as anybody looks at it, and counts nowhere
}

// Lock is the lock of one group.
type Lock struct {
	Holder string // the reader that holds it, or ""
	Parked bool   // it waits for a retry pause to end; never together with Holder
	Dead   bool   // dead letters hold it up; never together with Holder or Parked
	More   bool   // held, and the lock says that more waits in its backlog
	// Shared are the lock tokens that hold messages of the group when one receive gave several, in the order of the messages; Holder is the first.
	Shared []string
}

// ReaderSnapshot is one registered reader.
type ReaderSnapshot struct {
	LeaseEnd time.Time
	Units    []UnitSnapshot // what it holds, as the store recorded it
}

// UnitSnapshot is the store's record of one unit in the hands of a reader.
type UnitSnapshot struct {
	Name      string // lock name of its group, or Ref of the plain message
	Slot      int
	Announced bool // it may have been started: the reader's death counts as a failed attempt
}
