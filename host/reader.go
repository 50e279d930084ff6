package host

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/broker"
)

// settleLimit is how long a call may take that settles or gives back while the host shuts down. Its context is its own:
// one that ended with the host would lose what the handlers did (field case 8).
const settleLimit = 2 * time.Second

// reader is one place for a broker.Reader on a queue. It opens one, delivers, and opens the next after an error, until
// the queue is idle or off, the limit leaves no slot, or it is retired.
type reader struct {
	m       *monitor
	wanted  int // slots
	probe   bool
	started time.Time
	poked   chan struct{} // holds one: there may be work
	stop    chan struct{} // closed by retire
	room    atomic.Bool   // a slot could take a unit, or soon can: wake-ups go here
	granted atomic.Int32  // slots
	phase   atomic.Int32  // a phase, for State

	leaving bool // guarded by the monitor's mu: no wake-ups any more
}

func newReader(m *monitor, wanted int, probe bool) *reader {
	r := &reader{
		m: m, wanted: wanted, probe: probe, started: time.Now(),
		poked: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	r.room.Store(true)
	return r
}

// phase is how far a reader is, for the monitor's state.
type phase int32

const (
	phaseOpening   phase = iota // it has received nothing yet
	phaseReceiving              // it runs units or there may be more
	phaseIdle                   // its last receive was empty
)

// poke tells r that there may be work. It never blocks.
func (r *reader) poke() {
	select {
	case r.poked <- struct{}{}:
	default:
	}
}

// retire has r finish what runs, give back what does not, and end. The caller holds the monitor's mu.
func (r *reader) retire() {
	if r.leaving {
		return
	}
	r.leaving = true
	close(r.stop)
}

// ending says why a session ended.
type ending uint8

const (
	endIdle    ending = iota // nothing to do, or retired
	endOff                   // the queue is off
	endLimited               // the limit left no slot
	endLost                  // the lease ended
	endFailed                // an error
)

// run is the loop of r: one session after another.
func (r *reader) run() {
	defer r.m.closed()
	defer r.m.gone(r)
	var pauses backoff
	for r.once(&pauses) {
	}
}

// once makes one session and reports whether another should follow.
func (r *reader) once(pauses *backoff) bool {
	switch r.session(pauses) {
	case endOff:
		r.m.turnedOff()
		return !r.m.leave(r) // it may have been turned on in this very moment
	case endLimited:
		r.m.refused()
	case endLost:
		return !r.stopped()
	case endFailed:
		return r.rest(pauses.pause())
	case endIdle:
	}
	return false
}

// rest waits for d, and reports false when r was retired meanwhile.
func (r *reader) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
		return false
	}
}

func (r *reader) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// session opens a broker.Reader, delivers until there is a reason to end, and closes it.
func (r *reader) session(pauses *backoff) ending {
	rd, err := r.openReader()
	switch {
	case errors.Is(err, broker.ErrQueueDisabled):
		return endOff
	case err != nil:
		r.m.failed("a reader could not be opened", err)
		if errors.Is(err, broker.ErrUnknownEntity) {
			r.m.host.restore.ask()
		}
		return endFailed
	case rd == nil:
		return endLimited
	}
	r.m.receives()
	r.granted.Store(int32(rd.Slots()))
	d := newDelivery(r, rd)
	end, err := d.run()
	d.abandon(end)
	if err != nil {
		r.m.failed("delivery was interrupted", err)
	}
	if d.received {
		pauses.reset()
	}
	if cerr := r.closeReader(rd); cerr != nil && err == nil && end != endLost {
		r.m.failed("a reader could not be closed; its lease will end by itself", cerr)
	}
	return end
}

func (r *reader) openReader() (broker.Reader, error) {
	h := r.m.host
	h.opening <- struct{}{}
	defer func() { <-h.opening }()
	ctx, cancel := context.WithTimeout(h.receiving, h.cfg.Lease)
	defer cancel()
	r.m.mu.Lock()
	limit := r.m.max
	r.m.mu.Unlock()
	rd, err := h.cfg.Readers.OpenReader(ctx, r.m.queue, broker.ReaderOptions{
		Slots: r.wanted, Limit: limit, Lease: h.cfg.Lease, HostName: h.cfg.Name, NoState: r.m.bare,
	})
	if err == nil && rd != nil {
		h.cfg.Log.Debug("reader opened", slog.String("queue", r.m.queue), slog.String("reader", rd.Name()), slog.Int("slots", rd.Slots()))
	}
	return rd, err
}

func (r *reader) closeReader(rd broker.Reader) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	err := rd.Close(ctx)
	if errors.Is(err, broker.ErrLockLost) {
		return nil // it was reaped: nothing is left to give back
	}
	return err
}
