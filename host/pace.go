package host

import (
	"sync/atomic"
	"time"
)

// How wide a slot's window may be. What counts for speed is the number of units a turn, 32 to 128; what counts for exact
// counting is that a slow handler has one announced unit only (protocol, section 6).
const (
	windowSpan = 2 * time.Millisecond // a slot gets as many units as it should finish in this time
	windowMax  = 4
)

// slowUnit is how long a unit runs before the loop stops waiting for it with the settlement of others.
const slowUnit = time.Millisecond

// pace is how long a plugin's units take: a moving average that its readers share and that outlives them. Safe for
// concurrent use; an update lost to a race does not matter.
type pace struct {
	mean atomic.Int64 // nanoseconds; 0: nothing measured
}

// add takes one unit's duration into account. A rise counts more than a fall, so that a plugin that turns slow has a
// window of one at once.
func (p *pace) add(d time.Duration) {
	d = max(d, 1)
	old := time.Duration(p.mean.Load())
	switch {
	case old == 0:
		old = d
	case d > old:
		old += (d - old) / 4
	default:
		old -= (old - d) / 16
	}
	p.mean.Store(int64(old))
}

// unit returns the expected duration of one unit, and false when none has been measured.
func (p *pace) unit() (time.Duration, bool) {
	d := time.Duration(p.mean.Load())
	return d, d > 0
}

// window returns how many announced units a slot may hold.
func (p *pace) window() int {
	d, ok := p.unit()
	if !ok {
		return 1
	}
	return int(min(max(windowSpan/d, 1), windowMax))
}
