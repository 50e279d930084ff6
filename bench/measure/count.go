package measure

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Count is how many of a known number of messages went through. Add may be
// called from many goroutines.
type Count struct {
	want int64
	seen atomic.Int64
	full chan struct{}
}

// NewCount waits for want messages; want is at least 1.
func NewCount(want int) *Count {
	return &Count{want: int64(want), full: make(chan struct{})}
}

// Add counts n messages.
func (c *Count) Add(n int) {
	after := c.seen.Add(int64(n))
	if after >= c.want && after-int64(n) < c.want {
		close(c.full)
	}
}

// Wait returns nil once all messages went through, or says how many did when ctx ends first.
func (c *Count) Wait(ctx context.Context) error {
	select {
	case <-c.full:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %d of %d messages went through", context.Cause(ctx), c.seen.Load(), c.want)
	}
}

// Check fails unless exactly the wanted number went through: fewer are lost, more are doubled.
func (c *Count) Check() error {
	if seen := c.seen.Load(); seen != c.want {
		return fmt.Errorf("%d messages went through, want %d", seen, c.want)
	}
	return nil
}
