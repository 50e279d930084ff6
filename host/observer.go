package host

import (
	"time"

	"parley/broker"
)

// Observer sees every attempt of a host. Its methods are called on the paths of delivery, from many goroutines at once:
// they never block and never fail. Package tracing implements it.
type Observer interface {
	// Attempt is told that an attempt starts, on the goroutine that runs it. A nil AttemptSpan says that this attempt is
	// not observed.
	Attempt(a *Attempt) AttemptSpan
	// Died is told of an attempt that died with its host, by the reaper (G9).
	Died(d *broker.DeadAttempt)
	// LeaseLost is told that a reader lost its lease, and how many attempts it thereby lost.
	LeaseLost(queue, reader string, units int)
}

// Attempt is what is known as a delivery attempt starts. It is valid during the call of Observer.Attempt only; Unit is
// valid until the attempt is settled.
type Attempt struct {
	Queue  string
	Plugin string // its name
	Digest string // its module
	Reader string
	Number int // 1 for the first delivery
	Unit   *broker.Unit
	Start  time.Time
}

// AttemptSpan follows one attempt. Its calls come one after the other: Traceparent, Ran, Settled, each once.
type AttemptSpan interface {
	// Traceparent is the attempt's W3C context, given to the guest.
	Traceparent() string
	// Ran is told that the handler has ended. It may add trace context to the messages staged in res.
	Ran(res *Result)
	// Settled is told what the attempt led to; nothing follows.
	Settled(s Settled)
}

// Settled is how an attempt ended for the broker.
type Settled struct {
	Consequence broker.Consequence
	Err         error     // why a commit was refused or lost
	Start, End  time.Time // of the call that settled it; zero when no call did
}
