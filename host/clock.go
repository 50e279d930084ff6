package host

import (
	"sync/atomic"
	"time"
)

// clock knows how far the broker's clock is ahead of this host's, as seen in replies. Safe for concurrent use. Nothing
// that counts is decided from it (G10): it only says when to look.
type clock struct {
	ahead atomic.Int64 // nanoseconds
}

// saw takes the broker's time in a reply to a call between start and end.
func (c *clock) saw(broker, start, end time.Time) {
	if !broker.IsZero() {
		c.ahead.Store(int64(broker.Sub(start.Add(end.Sub(start) / 2))))
	}
}

// local returns what this host's clock shows at the instant t of the broker's.
func (c *clock) local(t time.Time) time.Time { return t.Add(-time.Duration(c.ahead.Load())) }
