package sdk

import (
	"errors"
	"time"

	"parley/sdk/abi"
)

// Handler handles one unit of work. nil commits it; an error rolls it back, or dead-letters it when it is of DeadLetter.
type Handler func(*Unit) error

var registered Handler

// Handle registers the handler of the plugin. Call it from init; the last call counts.
func Handle(h Handler) { registered = h }

// deadLetter is the error that asks for the dead-letter queue.
type deadLetter struct{ reason, description string }

func (d *deadLetter) Error() string {
	if d.description == "" {
		return d.reason
	}
	return d.reason + ": " + d.description
}

// DeadLetter returns an error that, returned by the handler (wrapped or not), moves all messages of the unit to the
// dead-letter queue instead of trying again. Nothing that was staged happens. For one message of several, see
// Message.DeadLetter. Reason and description are cut at 4,096 characters.
func DeadLetter(reason, description string) error {
	return &deadLetter{reason, description}
}

// retryAfter is an error with the pause it asks for.
type retryAfter struct {
	err   error
	pause time.Duration
}

func (r *retryAfter) Error() string { return r.err.Error() }
func (r *retryAfter) Unwrap() error { return r.err }

// RetryAfter returns err with the wish that the next attempt be made after pause, instead of the queue's own pause. The
// rollback counts like any other. Pauses are whole milliseconds, 0 or more.
func RetryAfter(err error, pause time.Duration) error {
	return &retryAfter{err, pause}
}

// run makes one attempt and returns the number parley_handle answers with.
func run(u *Unit, h Handler) int32 {
	if h == nil {
		u.host.fail("the plugin registered no handler: call sdk.Handle from init")
		return abi.Rollback
	}
	err := handled(u, h)
	if err == nil {
		return abi.Commit
	}
	var dead *deadLetter
	if errors.As(err, &dead) {
		u.host.deadLetter(dead.reason, dead.description)
		return abi.DeadLetter
	}
	var retry *retryAfter
	if errors.As(err, &retry) {
		u.host.retryAfter(retry.pause.Milliseconds())
	}
	u.host.fail(err.Error())
	return abi.Rollback
}

// handled calls h. With its return the unit is over.
func handled(u *Unit, h Handler) error {
	defer u.life.end()
	return h(u)
}

// result turns the number a function answered into an error; nil when it is not negative.
func result(n int32) error {
	if n < 0 {
		return abi.Errno(n)
	}
	return nil
}
