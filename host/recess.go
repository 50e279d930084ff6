package host

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/broker"
)

// Pauses of a plugin after attempts that said nothing about its handler.
const (
	startFirst  = time.Second            // it does not start
	startLast   = 30 * time.Second       // doubling up to that
	answerFirst = 100 * time.Millisecond // the broker did not answer it
	answerLast  = 5 * time.Second
)

// recess is the pause of one monitor's plugin: while attempts end with a fault nothing is received for it, since whatever is received
// would only be given back.
type recess struct {
	base  time.Time    // what until counts from: a step of the wall clock moves no recess
	until atomic.Int64 // when the last one ends; 0: the last attempt had no fault. Written under the monitor's mu

	pause time.Duration // the last one; guarded by the monitor's mu, as is what follows
	why   string        // the fault; "" when the last attempt had none
}

// lasts reports whether nothing is to be received now.
func (r *recess) lasts() bool {
	until := r.until.Load()
	return until != 0 && time.Since(r.base) < time.Duration(until)
}

// ends returns when it ends, the zero time when there is none.
func (r *recess) ends() time.Time {
	if until := r.until.Load(); until != 0 {
		return r.base.Add(time.Duration(until))
	}
	return time.Time{}
}

// next is how long the recess after fault is to last.
func (r *recess) next(fault error) time.Duration {
	first, last := answerFirst, answerLast
	if errors.Is(fault, ErrNotStarted) {
		first, last = startFirst, startLast
	}
	r.pause = min(max(2*r.pause, first), last)
	return r.pause
}

// ran takes how an attempt ended that began when the recess was at mark.
func (m *monitor) ran(res *Result, mark int64) {
	switch {
	case res.Fault != nil:
		m.unfit(res.Fault, mark)
	case mark != 0 && res.Settlement.Verdict != broker.VerdictRelease:
		m.fit(mark)
	}
}

// unfit gives the plugin a recess after an attempt with a fault, says so if that is news, and has the readers give back what they
// hold and do not run. An attempt that was under way when the last recess began does not make another.
func (m *monitor) unfit(fault error, mark int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recess.until.Load() != mark {
		return
	}
	pause := m.recess.next(fault)
	m.recess.until.Store(int64(time.Since(m.recess.base) + pause))
	news := m.recess.why != fault.Error()
	m.recess.why, m.lastErr = fault.Error(), fault.Error()
	for _, r := range m.readers {
		r.retire()
	}
	m.host.sweeper.again(m, time.Now().Add(pause))
	if news {
		m.host.cfg.Log.Error("the plugin cannot handle messages; they wait uncounted until it can",
			slog.String("queue", m.queue), slog.String("plugin", m.name), slog.Any("error", fault), slog.Duration("pause", pause))
	}
}

// fit ends the run of faults after an attempt without one.
func (m *monitor) fit(mark int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recess.until.Load() != mark {
		return
	}
	m.recess.until.Store(0)
	m.recess.pause, m.recess.why, m.lastErr = 0, "", ""
	m.host.cfg.Log.Info("the plugin handles messages again", slog.String("queue", m.queue), slog.String("plugin", m.name))
}
