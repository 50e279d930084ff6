package meter

import (
	"errors"
	"sync/atomic"
	"time"
)

// Why [Meter.Checkpoint] stops a guest.
var (
	// ErrFuelExhausted: the guest used more units than its limit.
	ErrFuelExhausted = errors.New("fuel exhausted")
	// ErrDeadlineExceeded: the deadline of the call has passed.
	ErrDeadlineExceeded = errors.New("deadline exceeded")
)

// Meter is the account of one instance: it hands out units in slices and decides at each checkpoint whether the guest goes on.
// The zero value is ready. All methods but Stop belong to the goroutine that calls the guest; Stop may come from any.
type Meter struct {
	limit, slice, given int64
	deadline            time.Time
	cause               atomic.Pointer[error]
}

// Begin starts the account of one call and returns the value to set the counter to. The call may use limit units (0 means
// without limit) and runs until deadline (the zero time means without); it visits the checkpoint at least every slice units,
// which must be positive. A Stop from before is forgotten. How many units are used until a given point does not depend on slice.
func (m *Meter) Begin(limit, slice int64, deadline time.Time) (counter int64) {
	m.cause.Store(nil)
	m.limit, m.slice, m.deadline = limit, max(slice, 1), deadline
	m.given = m.slice
	if limit > 0 {
		m.given = min(m.given, limit)
	}
	return m.given
}

// Checkpoint is called with the counter when it has become negative. It returns the value, never negative, to set the counter
// to, or the reason to stop: the cause given to Stop, [ErrFuelExhausted] or [ErrDeadlineExceeded]. Then the counter stays.
func (m *Meter) Checkpoint(counter int64, now time.Time) (refilled int64, stop error) {
	switch cause := m.cause.Load(); {
	case cause != nil:
		return counter, *cause
	case m.limit > 0 && m.Used(counter) > m.limit:
		return counter, ErrFuelExhausted
	case !m.deadline.IsZero() && !now.Before(m.deadline):
		return counter, ErrDeadlineExceeded
	}
	add := m.slice - min(counter, 0) // one large charge may take several slices at once
	if m.limit > 0 {
		add = min(add, m.limit-m.given)
	}
	m.given += add
	return counter + add, nil
}

// Used returns the units used since Begin, given the present counter. After a stop for fuel it is more than the limit by the
// last charge.
func (m *Meter) Used(counter int64) int64 { return m.given - counter }

// Stop makes the next checkpoint of the running call return cause, which must not be nil. The guest is stopped within one
// slice, so it is for shutting down, a lost lease or a cancelled context.
func (m *Meter) Stop(cause error) { m.cause.CompareAndSwap(nil, &cause) }
