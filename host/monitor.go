package host

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// State is the state of a queue monitor (AC-6).
type State string

// The states of a queue monitor.
const (
	Inactive          State = "INACTIVE"           // nothing is ready, or nothing may be started
	Notified          State = "NOTIFIED"           // work waits and a reader was started
	ReceivesOccurring State = "RECEIVES_OCCURRING" // readers receive and run
)

// maxNames is how many readers a host has on one queue: two names, each with its own call in flight, so that one runs
// units while the other waits for the broker (speed, section 4).
const maxNames = 2

// limitPause is how long a monitor waits after the limit left it no slot.
const limitPause = time.Second

// monitor is the queue monitor of one activated queue. It has no goroutine: it starts readers when work waits, and they
// end by themselves when there is none.
type monitor struct {
	host   *Host
	name   string // of the plugin
	queue  string
	top    int
	bare   bool // fetch no state
	runner atomic.Pointer[plugin]
	pace   pace
	count  counters
	recess recess

	mu        sync.Mutex // guards everything below
	max       int        // max_queue_readers
	readers   []*reader  // in the order of their start
	off       bool       // the queue was found off, and said so
	paused    bool       // activation is off
	draining  bool
	limited   time.Time // no reader is started before: the limit left no slot
	missed    bool      // a reader was wanted while as many as are allowed were closing
	reshaping bool      // max changed, and readers from before the change are still open
	lastErr   string
	started   time.Time // last reader's start
	emptied   time.Time // last empty turn
	warm      bool      // an instance may wait for work
	idleFrom  time.Time // when the last reader closed that had work
	handed    int64     // units handed out until then
}

// plugin is a Runner with its digest, swapped as one.
type plugin struct {
	runner Runner
	digest string
}

func newMonitor(h *Host, p *PluginConfig) *monitor {
	m := &monitor{host: h, name: p.Name, queue: p.Queue, top: p.Top, bare: p.NoState, max: max(p.MaxReaders, 0)}
	m.recess.base = time.Now()
	m.warm, m.idleFrom = true, m.recess.base // a Runner may start with an instance
	m.runner.Store(&plugin{runner: p.Runner, digest: p.Runner.Digest()})
	return m
}

// wake has a reader look at the queue: an open one with a free slot, else a new one. probe says that nothing was
// announced, so that a reader that finds nothing closes at once.
func (m *monitor) wake(probe bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mayStart() {
		return
	}
	for _, r := range m.readers {
		if r.room.Load() && !r.leaving {
			r.poke()
			return
		}
	}
	m.startReader(probe)
}

// more has another reader than r look at the queue, because r has no slot left or more waits than it took.
func (m *monitor) more(r *reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mayStart() || r.leaving {
		return
	}
	for _, o := range m.readers {
		if o != r && !o.leaving && o.room.Load() {
			o.poke()
			return
		}
	}
	m.startReader(false)
}

func (m *monitor) mayStart() bool { return !m.draining && !m.paused && m.max > 0 && !m.recess.lasts() }

// startReader starts a reader if another name is allowed and the limit did not just refuse one; else it remembers that
// one was wanted. The caller holds mu.
func (m *monitor) startReader(probe bool) {
	names, wanted := 0, m.max
	for _, r := range m.readers {
		if r.leaving {
			continue
		}
		names++
		wanted -= r.wanted
	}
	allowed := min(m.max, maxNames)
	if names >= allowed || len(m.readers) >= 2*maxNames {
		m.missed = m.missed || names < allowed
		return
	}
	if !m.limited.IsZero() && time.Now().Before(m.limited) {
		m.count.limited.Add(1)
		return
	}
	if names == 0 {
		wanted = (m.max + allowed - 1) / allowed
	}
	r := newReader(m, max(wanted, 1), probe)
	m.readers = append(m.readers, r)
	m.started = r.started
	m.count.started.Add(1)
	m.host.crew.start(r.run)
}

// leave lets r close because it is idle, unless a wake-up came for it meanwhile. Then r goes on.
func (m *monitor) leave(r *reader) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-r.poked:
		return false
	default:
	}
	r.leaving = true
	return true
}

// gone takes r out of the monitor's readers for good.
func (m *monitor) gone(r *reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers = slices.DeleteFunc(m.readers, func(o *reader) bool { return o == r })
	m.count.stopped.Add(1)
	if m.missed && m.mayStart() {
		m.missed = false
		m.startReader(false)
	}
	m.reshape()
}

// reshape, after a change of max_queue_readers, has the readers that got fewer slots than they wanted open again once
// the ones from before the change have given theirs back. The caller holds mu.
func (m *monitor) reshape() {
	if !m.reshaping {
		return
	}
	for _, r := range m.readers {
		if r.leaving {
			return
		}
	}
	m.reshaping = false
	for _, r := range m.readers {
		if int(r.granted.Load()) < r.wanted {
			r.retire()
			m.missed = true
		}
	}
}

// turnedOff notes that the queue is off, with one line a transition (T-PM, design section 5).
func (m *monitor) turnedOff() {
	m.mu.Lock()
	was := m.off
	m.off = true
	m.mu.Unlock()
	if !was {
		m.host.cfg.Log.Warn("queue is off; its readers stop", slog.String("queue", m.queue), slog.String("plugin", m.name))
	}
}

// receives notes that the queue answers.
func (m *monitor) receives() {
	m.mu.Lock()
	was := m.off
	m.off, m.lastErr, m.limited = false, m.recess.why, time.Time{}
	m.mu.Unlock()
	if was {
		m.host.cfg.Log.Info("queue is on; its readers start", slog.String("queue", m.queue), slog.String("plugin", m.name))
	}
}

// refused notes that the limit left no slot, and has the queue looked at again later.
func (m *monitor) refused() {
	m.count.limited.Add(1)
	m.mu.Lock()
	m.limited = time.Now().Add(limitPause)
	again := m.limited
	m.mu.Unlock()
	m.host.sweeper.again(m, again)
}

// failed notes an error and says it, at most once a second.
func (m *monitor) failed(what string, err error) {
	m.count.errors.Add(1)
	m.mu.Lock()
	m.lastErr = err.Error()
	m.mu.Unlock()
	m.host.quiet.say(slog.LevelError, "error "+m.queue, 1, what,
		slog.String("queue", m.queue), slog.String("plugin", m.name), slog.Any("error", err))
}

// sawEmpty notes an empty turn.
func (m *monitor) sawEmpty(at time.Time) {
	m.mu.Lock()
	m.emptied = at
	m.mu.Unlock()
}

// idle reports whether the sweep should look at the queue: no reader does.
func (m *monitor) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.readers) == 0 && m.mayStart()
}

// drain has every reader finish what it runs, and lets none start. The caller waits for the crew.
func (m *monitor) drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
	for _, r := range m.readers {
		r.retire()
	}
}

// pause turns activation off: running attempts finish, nothing new is received (AC-17). Or on again.
func (m *monitor) pause(off bool) {
	m.mu.Lock()
	m.paused = off
	if off {
		for _, r := range m.readers {
			r.retire()
		}
	}
	m.mu.Unlock()
	if !off {
		m.wake(true)
	}
}

// setMax changes max_queue_readers. What runs goes on; new readers start under the new number (AC-17).
func (m *monitor) setMax(n int) {
	m.mu.Lock()
	m.max, m.reshaping, m.limited = n, true, time.Time{}
	for _, r := range m.readers {
		r.retire()
	}
	m.mu.Unlock()
	m.wake(true)
}
