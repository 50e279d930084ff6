package host

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses after an error: never under the first, so that a broken broker is not hammered and no log is flooded (field
// case 1), and never much over the last, so that delivery is back soon after the cause is gone.
const (
	backoffFirst = 100 * time.Millisecond
	backoffLast  = 2 * time.Second
)

// backoff gives the pauses of one run of errors.
type backoff struct {
	next time.Duration
}

// pause returns how long to wait now: doubling, with up to half as much again at random so that many readers do not
// come back at the same instant.
func (b *backoff) pause() time.Duration {
	d := max(b.next, backoffFirst)
	b.next = min(2*d, backoffLast)
	return d + rand.N(d/2)
}

// reset ends the run of errors.
func (b *backoff) reset() { b.next = 0 }

// sleep waits for d or the end of ctx, and reports whether d passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
