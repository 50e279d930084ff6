package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// openingAtOnce limits how many readers are opened at the same time, so that waking ten thousand queues is no stampede.
const openingAtOnce = 16

// Host activates plugins on their queues and delivers to them. All methods are safe for concurrent use.
type Host struct {
	cfg      Config
	monitors map[string]*monitor // by queue; never changed after New
	order    []*monitor          // as configured
	crew     crew
	quiet    *quiet
	clock    clock
	sweeper  sweeper
	keeper   keeper
	restore  restorer
	opening  chan struct{} // holds one for each reader that is being opened
	ran      atomic.Bool

	// The contexts of a run, set by Run before anything starts.
	receiving context.Context // ends with Run's
	calls     context.Context // ends settleLimit after that: calls that were under way
	guests    context.Context // ends when the drain is over: attempts
}

// New checks cfg and returns a Host that does nothing until Run. ErrConfig names every problem.
func New(cfg Config) (*Host, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Host{
		cfg: cfg, monitors: make(map[string]*monitor, len(cfg.Plugins)),
		quiet: newQuiet(cfg.Log), opening: make(chan struct{}, openingAtOnce),
	}
	h.sweeper.init(h)
	h.keeper.init(h)
	h.restore.init(h)
	for i := range cfg.Plugins {
		m := newMonitor(h, &cfg.Plugins[i])
		h.monitors[m.queue] = m
		h.order = append(h.order, m)
	}
	return h, nil
}

// Run activates and delivers until ctx ends, then drains: what runs may finish within Config.Drain and is settled, what
// has not started is given back uncounted. It returns nil after a drain, whatever was cut short by it, and ErrRan when
// the host has run before.
func (h *Host) Run(ctx context.Context) error {
	if h.ran.Swap(true) {
		return ErrRan
	}
	kept := context.WithoutCancel(ctx)
	calls, endCalls := context.WithCancel(kept)
	guests, endGuests := context.WithCancelCause(kept)
	defer endCalls()
	defer endGuests(nil)
	h.receiving, h.calls, h.guests = ctx, calls, guests
	h.warnUnread()
	h.crew.start(func() { h.listen(ctx) })
	h.crew.start(func() { h.sweeper.run(ctx) })
	h.crew.start(func() { h.keeper.run(ctx) })
	h.crew.start(func() { h.restore.run(ctx) })
	<-ctx.Done()
	h.drain(endCalls, endGuests)
	return nil
}

// drain ends a run: readers first, so that nothing new is received; calls under way a little later; attempts last.
func (h *Host) drain(endCalls context.CancelFunc, endGuests context.CancelCauseFunc) {
	running := 0
	for _, m := range h.order {
		running += int(m.count.running.Load())
		m.drain()
	}
	h.cfg.Log.Info("host drains", slog.Int("running", running), slog.Duration("at_most", max(h.cfg.Drain, 0)))
	calls := time.AfterFunc(settleLimit, endCalls)
	guests := time.AfterFunc(max(h.cfg.Drain, 0), func() {
		endGuests(fmt.Errorf("host: the drain of %v is over: %w", h.cfg.Drain, context.Canceled))
	})
	h.crew.wait()
	calls.Stop()
	guests.Stop()
	h.cfg.Log.Info("host has drained")
}

// warnUnread says which queues nothing is ever started on (AC-1: warning 9648).
func (h *Host) warnUnread() {
	for _, m := range h.order {
		if m.max == 0 {
			h.cfg.Log.Warn("max_queue_readers is 0: no reader will be started", slog.String("queue", m.queue), slog.String("plugin", m.name))
		}
	}
}

// Activate turns activation of queue on or off (AC-17). Off: what runs goes on, nothing new is received. On: a reader is
// started at once if work waits. ErrNoPlugin.
func (h *Host) Activate(queue string, on bool) error {
	m, err := h.monitor(queue)
	if err != nil {
		return err
	}
	m.pause(!on)
	return nil
}

// SetMaxReaders changes max_queue_readers of queue (AC-17): 0 stops activation. What runs goes on. ErrNoPlugin, or
// ErrConfig for a number outside 0…MaxReadersLimit.
func (h *Host) SetMaxReaders(queue string, n int) error {
	m, err := h.monitor(queue)
	if err != nil {
		return err
	}
	if n < 0 || n > MaxReadersLimit {
		return fmt.Errorf("%w: max readers %d is outside 0…%d", ErrConfig, n, MaxReadersLimit)
	}
	m.setMax(n)
	return nil
}

// SetRunner switches the plugin of queue between attempts: attempts that run go on with the old one, which the caller
// may Close at once. It returns the old one. ErrNoPlugin.
func (h *Host) SetRunner(queue string, r Runner) (old Runner, err error) {
	m, err := h.monitor(queue)
	if err != nil {
		return nil, err
	}
	return m.runner.Swap(&plugin{runner: r, digest: r.Digest()}).runner, nil
}

func (h *Host) monitor(queue string) (*monitor, error) {
	m, ok := h.monitors[queue]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoPlugin, queue)
	}
	return m, nil
}

// wake takes a wake-up of the broker.
func (h *Host) wake(queue string) {
	if queue == "" {
		h.sweeper.now()
		return
	}
	if m, ok := h.monitors[queue]; ok {
		m.wake(false)
	}
}
