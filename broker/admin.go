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
	// Audit compares every queue (or only those named) and returns each difference it saw twice in a row while the queue
	// stood still between its looks. No difference: nil.
	Audit(ctx context.Context, queues ...string) ([]Difference, error)
}

// Difference is one thing audit found wrong.
type Difference struct {
	Queue string
	Rule  string // the invariant, in words
	Want  string
	Got   string
}
