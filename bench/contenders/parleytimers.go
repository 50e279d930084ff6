package contenders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/bench/measure"
	"parley/broker"
)

const (
	armedTimers = 1_000_000
	dueTimers   = 1000
	// farOff is when timers are due that only have to be armed.
	farOff = time.Hour
	// dueIn is how far ahead the timers are armed that are due at once: longer than arming them takes.
	dueIn = 2 * time.Second
)

// parleyTimers returns the workloads about dialogs that have a timer and nothing else to do.
func parleyTimers(messages int, guests *Guests) []measure.Workload {
	return []measure.Workload{
		{
			Name: ParleyTimersIdle, Kind: measure.Idle, Count: armedTimers,
			Open: openParleyOnCaller(guests, func(p *parley) measure.Side { return parleyTimersIdle{&parleyIdle{parley: p}} }),
			Does: fmt.Sprintf("a host with as many dialogs on one queue, each with an armed timer of which none is due, for %s", idleSpan),
		},
		{
			Name: ParleyTimersDue, Kind: measure.Latency, Count: dueTimers,
			Open: openParleyOnCaller(guests, func(p *parley) measure.Side { return &parleyTimersDue{parley: p} }),
			Does: fmt.Sprintf("the same host; as many timers of other dialogs are due at one instant: from then until the last is handled by a Go plugin "+
				"and committed; %d armed ones stay", armedTimers),
		},
		{
			Name: ParleyMemoryDialogs, Kind: measure.Memory, Count: messages, Open: openParleyDialogs(0),
			Does: "dialogs that have begun and sent nothing, counters and structures included",
		},
		{
			Name: ParleyMemoryTimers, Kind: measure.Memory, Count: messages, Open: openParleyDialogs(farOff),
			Does: "the same, each with an armed timer",
		},
	}
}

// beginMany begins n dialogs, each with a timer that is due after so long unless that is 0, as handlers begin them: in units of many.
func beginMany(ctx context.Context, p *parley, n int, after time.Duration) ([]string, error) {
	const slots, dialogs = 16, 50
	reader, err := p.broker.OpenReader(ctx, parleyFrom, broker.ReaderOptions{Slots: slots, Lease: time.Minute})
	if err != nil {
		return nil, err
	}
	handles := make([]string, 0, n)
	for len(handles) < n {
		if _, err := p.broker.Send(ctx, parleyFrom, make([]broker.Outgoing, slots)...); err != nil {
			return nil, err
		}
		free := make([]int, slots)
		for i := range free {
			free[i] = i
		}
		reply, err := reader.Turn(ctx, broker.TurnRequest{Free: free, Empty: slots, Top: 1})
		if err != nil {
			return nil, err
		}
		settle := make([]broker.Settlement, len(reply.Units))
		for i, unit := range reply.Units {
			settle[i].Unit = unit
			for range min(dialogs, n-len(handles)) {
				h, err := p.broker.NewHandle(parleyFrom)
				if err != nil {
					return nil, err
				}
				handles = append(handles, h)
				settle[i].Effects = append(settle[i].Effects, broker.Effect{Kind: broker.EffectBegin, Conversation: h, From: parleyCaller, To: parleyService})
				if after > 0 {
					settle[i].Effects = append(settle[i].Effects, broker.Effect{Kind: broker.EffectTimer, Conversation: h, After: after})
				}
			}
		}
		if err := settleAll(ctx, reader, settle); err != nil {
			return nil, err
		}
	}
	return handles, reader.Close(ctx)
}

func settleAll(ctx context.Context, reader broker.Reader, settle []broker.Settlement) error {
	reply, err := reader.Turn(ctx, broker.TurnRequest{Settle: settle, Top: 1})
	if err != nil {
		return err
	}
	for _, r := range reply.Results {
		if r.Consequence != broker.Committed {
			return fmt.Errorf("a unit that begins dialogs ended with consequence %d: %w", r.Consequence, r.Err)
		}
	}
	return nil
}

// parleyDialogs only lets dialogs be there, for the memory they take.
type parleyDialogs struct {
	*parley
	after time.Duration
}

func openParleyDialogs(after time.Duration) func(context.Context, string) (measure.Side, error) {
	return func(ctx context.Context, addr string) (measure.Side, error) {
		p, err := openParley(ctx, addr)
		return &parleyDialogs{parley: p, after: after}, err
	}
}

func (d *parleyDialogs) Prepare(ctx context.Context, n int) error {
	if err := d.define(ctx, true, parleySource); err != nil {
		return err
	}
	_, err := beginMany(ctx, d.parley, n, d.after)
	return err
}

func (d *parleyDialogs) Run(context.Context) error { return nil }

func (d *parleyDialogs) Verify(ctx context.Context) error {
	return errors.Join(d.holds(ctx, parleyFrom, 0, 0), d.audit(ctx))
}

// openParleyOnCaller opens a host with a plugin on the queue of the dialogs that begin.
func openParleyOnCaller(guests *Guests, side func(*parley) measure.Side) func(context.Context, string) (measure.Side, error) {
	return func(ctx context.Context, addr string) (measure.Side, error) {
		p, runner, err := openWith(ctx, addr, guests, guestNoop)
		if err != nil {
			return nil, err
		}
		p.activate(parleyFrom, runner, parleySlots)
		return side(p), nil
	}
}

// prepareArmed leaves a host with n armed timers that sleeps.
func prepareArmed(ctx context.Context, p *parley, n int) error {
	if err := p.define(ctx, true, parleySource); err != nil {
		return err
	}
	if _, err := beginMany(ctx, p, n, farOff); err != nil {
		return err
	}
	if err := p.start(); err != nil {
		return err
	}
	return measure.Until(ctx, 100*time.Millisecond, p.asleep)
}

// parleyTimersIdle is a host with armed timers of which none is due.
type parleyTimersIdle struct{ *parleyIdle }

func (i parleyTimersIdle) Prepare(ctx context.Context, n int) error {
	return prepareArmed(ctx, i.parley, n)
}

// parleyTimersDue is a host with as many, and some more of which all are due at one instant.
type parleyTimersDue struct {
	*parley
	handles []string
	sample  time.Duration
}

func (d *parleyTimersDue) Prepare(ctx context.Context, n int) (err error) {
	if err := prepareArmed(ctx, d.parley, armedTimers); err != nil {
		return err
	}
	for range n {
		endpoint, err := d.broker.Begin(ctx, broker.Dialog{From: parleyCaller, To: parleyService})
		if err != nil {
			return err
		}
		d.handles = append(d.handles, endpoint.Handle)
	}
	return nil
}

// Run arms the timers for one instant and takes the time from then until the last is handled.
func (d *parleyTimersDue) Run(ctx context.Context) error {
	due := time.Now().Add(dueIn)
	for _, h := range d.handles {
		if err := d.broker.Timer(ctx, h, time.Until(due), "", "", 0); err != nil {
			return err
		}
	}
	if committed, err := d.settled(); err != nil || committed > 0 || time.Now().After(due) {
		return errors.Join(err, fmt.Errorf("%d timers fired before all were armed", committed))
	}
	wait := time.NewTimer(time.Until(due))
	defer wait.Stop()
	<-wait.C
	err := measure.Until(ctx, time.Millisecond, func() error {
		committed, err := d.settled()
		if err == nil && committed < len(d.handles) {
			err = fmt.Errorf("%d of %d timers were handled", committed, len(d.handles))
		}
		return err
	})
	d.sample = time.Since(due)
	return err
}

func (d *parleyTimersDue) Verify(ctx context.Context) error {
	if err := d.halt(); err != nil {
		return err
	}
	if committed, err := d.settled(); err != nil || committed != len(d.handles) {
		return errors.Join(err, fmt.Errorf("%d attempts committed, want %d", committed, len(d.handles)))
	}
	return errors.Join(d.holds(ctx, parleyFrom, 0, 0), d.audit(ctx))
}

// Samples implements measure.Sampler: one, of the timer that was last.
func (d *parleyTimersDue) Samples() []time.Duration { return []time.Duration{d.sample} }
