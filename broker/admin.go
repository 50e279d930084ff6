package broker

import "context"

// EntityAdmin creates and alters entities.
type EntityAdmin interface {
	// Apply creates what is missing and alters what differs; nothing is deleted. With dryRun it only says what it would
	// do. All of the definitions are checked before anything is changed.
	Apply(ctx context.Context, defs Definitions, dryRun bool) ([]Change, error)
}

// QueueAdmin looks at queues and switches them.
type QueueAdmin interface {
	// Queues returns the names of all queues, sorted.
	Queues(ctx context.Context) ([]string, error)
	// Queue returns one queue, or ErrUnknownEntity.
	Queue(ctx context.Context, name string) (QueueInfo, error)
	// SetStatus switches a queue. Turning it active restarts the poison counters from 0 (PM-4).
	SetStatus(ctx context.Context, name string, s QueueStatus) error
	// DeleteQueue removes a queue, its sub-queues and all their messages. Refused while a service is bound to it.
	DeleteQueue(ctx context.Context, name string) error
	// Purge deletes the messages of path; see DeadLetters.Purge.
	Purge(ctx context.Context, path string) (int64, error)
}

// EventReader reads the event streams of all queues, merged by time.
type EventReader interface {
	// Events calls yield with every kept event in order; with follow it goes on with new ones until ctx ends.
	Events(ctx context.Context, follow bool, yield func(Event) bool) error
}

// Auditor proves G5: it walks the keyspace and compares places with counters.
type Auditor interface {
	// Audit compares every queue (or only those named), sub-queues included. It is safe beside running hosts: it reads in steps
	// of bounded size and leaves bodies where they are; what it remembers is in proportion to what waits behind locks, not to
	// what is stored. A namespace without queues is ErrUnknownEntity, as is a queue that does not exist.
	Audit(ctx context.Context, queues ...string) (AuditReport, error)
	// Repair audits likewise and mends what it finds, with an event for each queue that it changed, unless the queue changes
	// meanwhile. Messages that are not there any more stay lost; what is there becomes deliverable, in its order, and counters
	// are made to agree with it. Differences of the report are those that are left.
	Repair(ctx context.Context, queues ...string) (AuditReport, error)
}

// AuditReport is what an audit found. Each queue has one of three outcomes: it is right, it has differences, or it could not be
// compared because it changed during every look.
type AuditReport struct {
	Queues        int64        // looked at
	Messages      int64        // found in the queues that could be compared, their sub-queues and transmission streams included
	Conversations int64        // of these queues, open on one side at least
	Differences   []Difference // each was seen twice while the queue stood still
	Unsettled     []string     // paths of the entities that could not be compared
	Repaired      []Difference // by Repair: what was found and mended
}

// Clean reports whether everything was compared and nothing is wrong.
func (r AuditReport) Clean() bool { return len(r.Differences) == 0 && len(r.Unsettled) == 0 }

// Difference is one thing audit found wrong.
type Difference struct {
	Queue string
	Rule  string // the invariant, in words
	Want  string
	Got   string
}
