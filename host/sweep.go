package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/broker"
)

// Sweeper is what Config.Readers may implement beside broker.Readers so that idle queues cost next to nothing.
type Sweeper interface {
	// Sweep looks at queues without opening a reader on any. It marks each that has nothing deliverable, so that the next
	// arrival wakes its readers, and returns the others: those with deliverable work and those it cannot tell about. It
	// passes over queues that are off. It returns an error that wraps broker.ErrUnknownEntity, beside what it found, when
	// one of queues does not exist.
	Sweep(ctx context.Context, queues []string) ([]string, error)
}

const (
	sweepChunk   = 1000 // queues in one call of a Sweeper
	probesAtIdle = 100  // queues that are looked at in one sweep, in turn, when there is no Sweeper
)

// sweeper looks at idle queues for wake-ups that were lost, and again at those where the limit left no slot or whose plugin had a recess.
type sweeper struct {
	h      *Host
	asks   chan struct{}      // holds one: sweep everything now
	sooner chan struct{}      // holds one: later has grown
	next   int                // where the probes of the next sweep begin
	turns  map[*monitor]int64 // turns of monitors with readers, at the last sweep

	mu    sync.Mutex // guards later
	later map[*monitor]time.Time
}

func (s *sweeper) init(h *Host) {
	s.h, s.asks, s.sooner = h, make(chan struct{}, 1), make(chan struct{}, 1)
	s.later, s.turns = make(map[*monitor]time.Time), make(map[*monitor]int64)
}

// now has everything swept. It never blocks.
func (s *sweeper) now() {
	select {
	case s.asks <- struct{}{}:
	default:
	}
}

// again has m looked at at that time.
func (s *sweeper) again(m *monitor, at time.Time) {
	s.mu.Lock()
	s.later[m] = at
	s.mu.Unlock()
	select {
	case s.sooner <- struct{}{}:
	default:
	}
}

// run is the loop of s.
func (s *sweeper) run(ctx context.Context) {
	s.once(ctx, true)
	tick := time.NewTicker(s.h.cfg.Sweep)
	defer tick.Stop()
	soon := time.NewTimer(time.Hour)
	defer soon.Stop()
	for {
		soon.Reset(s.wakeLater(time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-soon.C:
		case <-s.sooner:
		case <-tick.C:
			s.once(ctx, false)
		case <-s.asks:
			s.once(ctx, true)
		}
	}
}

// wakeLater wakes the monitors whose time has come, and returns how long until the next.
func (s *sweeper) wakeLater(now time.Time) time.Duration {
	var due []*monitor
	next := time.Hour
	s.mu.Lock()
	for m, at := range s.later {
		if left := at.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		due = append(due, m)
		delete(s.later, m)
	}
	s.mu.Unlock()
	for _, m := range due {
		m.wake(true)
	}
	return next
}

// once makes one sweep. Without a Sweeper it probes all idle queues, or only the next few of them.
func (s *sweeper) once(ctx context.Context, all bool) {
	idle := s.idle()
	if sw, ok := s.h.cfg.Readers.(Sweeper); ok {
		s.ask(ctx, sw, idle)
		return
	}
	if !all && len(idle) > probesAtIdle {
		s.next %= len(idle)
		idle = append(idle[s.next:], idle[:s.next]...)[:probesAtIdle]
		s.next += probesAtIdle
	}
	for _, m := range idle {
		m.wake(true)
	}
}

// idle returns the monitors without a reader. One whose readers made no turn since the last sweep, because what they run
// takes long, looks for itself.
func (s *sweeper) idle() []*monitor {
	idle := make([]*monitor, 0, len(s.h.order))
	now := time.Now()
	for _, m := range s.h.order {
		if m.idle() {
			delete(s.turns, m)
			m.cool(now)
			idle = append(idle, m)
			continue
		}
		turns := m.count.turns.Load()
		if before, ok := s.turns[m]; ok && before == turns {
			m.wake(true)
		}
		s.turns[m] = turns
	}
	return idle
}

// ask sweeps idle with sw.
func (s *sweeper) ask(ctx context.Context, sw Sweeper, idle []*monitor) {
	queues := make([]string, 0, sweepChunk)
	for len(idle) > 0 && ctx.Err() == nil {
		n := min(len(idle), sweepChunk)
		queues = queues[:0]
		for _, m := range idle[:n] {
			queues = append(queues, m.queue)
		}
		idle = idle[n:]
		found, err := sw.Sweep(ctx, queues)
		for _, q := range found {
			if m, ok := s.h.monitors[q]; ok {
				m.wake(true)
			}
		}
		if errors.Is(err, broker.ErrUnknownEntity) {
			s.h.restore.ask()
		} else if err != nil && ctx.Err() == nil {
			s.h.quiet.say(slog.LevelError, "sweep", 1, "idle queues could not be swept", slog.Any("error", err))
		}
	}
}
