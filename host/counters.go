package host

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/broker"
)

// consequences is how many consequences a settlement can have.
const consequences = int(broker.Lost) + 1

// counters is what a monitor counts. Safe for concurrent use.
type counters struct {
	started, stopped, limited, errors, leaseLosses atomic.Int64
	turns, empty, units, running, waiting          atomic.Int64

	settled [consequences]atomic.Int64
}

func (c *counters) turn(units int, waiting int64) {
	c.turns.Add(1)
	if units == 0 {
		c.empty.Add(1)
	} else {
		c.units.Add(int64(units))
	}
	c.waiting.Store(waiting)
}

// MonitorInfo is what is known of one queue monitor (AC-18). Counters count from the start of the host.
type MonitorInfo struct {
	Queue, Plugin string
	Digest        string // of the plugin's module
	State         State
	Off           bool // the queue is off
	Paused        bool // activation is off
	MaxReaders    int  // slots all hosts together may have
	Readers       int  // readers open here
	Slots         int  // slots they were granted
	Running       int  // attempts that run now
	Window        int  // units a slot holds at most, by the measured speed
	UnitTime      time.Duration
	Waiting       int64 // messages ready on the queue at the last turn
	Idle, Busy    int   // instances of the plugin; 0 when the runner keeps none

	ReadersStarted int64
	ReadersStopped int64
	LimitReached   int64 // starts that the limit refused (AC-11)
	Errors         int64
	LeaseLosses    int64
	Turns          int64
	EmptyTurns     int64
	Units          int64                        // handed out
	Settled        map[broker.Consequence]int64 // by what came of it; every consequence is present

	Recess        string    // why the plugin cannot handle messages; "": it can, or was not asked yet
	RecessEnds    time.Time // when it is tried again; zero: it was never given up
	LastError     string    // "" when the last call succeeded
	LastActivated time.Time // zero: never
	LastEmpty     time.Time // last turn that found nothing; zero: never
}

// Pooled is a Runner that keeps instances.
type Pooled interface {
	// Instances returns how many instances wait for work and how many work.
	Instances() (idle, busy int)
}

// Monitors returns all queue monitors, sorted by queue. Safe for concurrent use, before, during and after Run.
func (h *Host) Monitors() []MonitorInfo {
	infos := make([]MonitorInfo, 0, len(h.monitors))
	for _, m := range h.monitors {
		infos = append(infos, m.info())
	}
	slices.SortFunc(infos, func(a, b MonitorInfo) int { return strings.Compare(a.Queue, b.Queue) })
	return infos
}

func (m *monitor) info() MonitorInfo {
	c := &m.count
	p := m.runner.Load()
	i := MonitorInfo{
		Queue: m.queue, Plugin: m.name, Digest: p.digest,
		Running: int(c.running.Load()), Window: m.pace.window(), Waiting: c.waiting.Load(),
		ReadersStarted: c.started.Load(), ReadersStopped: c.stopped.Load(), LimitReached: c.limited.Load(),
		Errors: c.errors.Load(), LeaseLosses: c.leaseLosses.Load(),
		Turns: c.turns.Load(), EmptyTurns: c.empty.Load(), Units: c.units.Load(),
		Settled: make(map[broker.Consequence]int64, consequences),
	}
	i.UnitTime, _ = m.pace.unit()
	for k := range c.settled {
		i.Settled[broker.Consequence(k)] = c.settled[k].Load()
	}
	if pool, ok := p.runner.(Pooled); ok {
		i.Idle, i.Busy = pool.Instances()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i.Off, i.Paused, i.MaxReaders, i.Readers = m.off, m.paused, m.max, len(m.readers)
	i.LastError, i.LastActivated, i.LastEmpty = m.lastErr, m.started, m.emptied
	i.Recess, i.RecessEnds = m.recess.why, m.recess.ends()
	i.State = Inactive
	for _, r := range m.readers {
		i.Slots += int(r.granted.Load())
		switch phase(r.phase.Load()) {
		case phaseReceiving:
			i.State = ReceivesOccurring
		case phaseOpening:
			if i.State == Inactive {
				i.State = Notified
			}
		case phaseIdle:
		}
	}
	return i
}
