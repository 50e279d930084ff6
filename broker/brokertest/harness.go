package brokertest

import (
	"context"
	"testing"
	"time"

	"parley/broker"
)

// Broker is every role together, as one client of one namespace plays them.
type Broker interface {
	broker.Sender
	broker.Readers
	broker.Waker
	broker.Keeper
	broker.Receiver
	broker.Peeker
	broker.DeadLetters
	broker.Dialogs
	broker.DialogVerbs
	broker.Admin
	broker.Auditor
	// Sweep names those of queues in which a reader would find something.
	Sweep(ctx context.Context, queues []string) ([]string, error)
	// Snapshot tells all that is kept about queue. Nothing else runs meanwhile.
	Snapshot(ctx context.Context, queue string) (broker.Snapshot, error)
}

// New makes an empty namespace and opens clients on it; they close when t ends. It may be called many times in one test.
type New func(t testing.TB) Harness

// Harness is one broker under test with the faults a test may inject. Its functions fail t rather than return errors.
// Funcs marked optional may be nil; then the tests that need them are left out, and the name of the run says so.
type Harness struct {
	// Broker is the client that the faults below act on.
	Broker Broker
	// Peer is a second client of the same namespace, as if in another host. No fault acts on it.
	Peer Broker

	// Advance moves the clock that every script reads by d, back when d is below 0. The clock stands still otherwise, and it
	// starts at a whole second.
	Advance func(d time.Duration)

	// The next three concern calls of Broker that run a script which may change something; skip such calls go through
	// untouched first.

	// LoseReply lets n of them reach the store and happen, and loses their replies: the client sees a broken connection.
	LoseReply func(skip, n int)
	// LoseCall loses n of them before they reach the store.
	LoseCall func(skip, n int)
	// HoldCall takes one off the wire: the client sees a broken connection at once. The call happens when deliver is
	// called, which returns when it has happened; deliver reports false, and does nothing, when no call was taken.
	HoldCall func(skip int) (deliver func() bool)
	// Calm takes back what the three above still have in store, and reports whether that was everything: the faults
	// asked for have not happened.
	Calm func() (untouched bool)

	// LoseEntry deletes the stored record of the waiting or held message ref behind the broker's back, as a foreign XDEL
	// or a trimmed stream does (field case 5).
	LoseEntry func(queue, ref string)
	// Spoil adds a record to queue that no sender of ours made.
	Spoil func(queue string, fields map[string]string)
	// Write adds an entry to a stream of queue as others do; the names are those of docs/redis.md.
	Write func(queue, stream, id string, fields ...string) error
	// SetCounter makes a counter of queue wrong.
	SetCounter func(queue, name string, n int)
	// LoseGroup makes the lane 5 of queue lose its readers' group, as XGROUP DESTROY does.
	LoseGroup func(queue string)
	// Real says that the store is a server of its own, which can do some things the embedded one cannot.
	Real bool
	// Flush deletes everything in the namespace's store, as FLUSHALL does (field case 1).
	Flush func()
	// Usage is how many records of the namespace the store has and, if it can tell, how many bytes they take.
	Usage func() (records int, bytes int64)
	// Full makes the store refuse writes for lack of memory until Full(false). Optional: the embedded store has no limit.
	Full func(full bool)
	// StarvePool opens a client whose connection pool has n connections only (S3). Optional.
	StarvePool func(n int) Broker
}
