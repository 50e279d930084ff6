package contenders

import (
	"context"
	"fmt"
	"time"

	"parley/bench/measure"
)

// idleSpan is how long an idle host is watched: a few of its sweeps.
const idleSpan = 30 * time.Second

// parleyIdle is a host with nothing to do on many queues.
type parleyIdle struct {
	*parley
	queues []string
}

func openParleyIdle(guests *Guests) func(context.Context, string) (measure.Side, error) {
	return func(ctx context.Context, addr string) (measure.Side, error) {
		p, runner, err := openWith(ctx, addr, guests, guestNoop)
		if err != nil {
			return nil, err
		}
		idle := &parleyIdle{parley: p}
		for i := range parleyQueues {
			name := fmt.Sprintf("q%d", i)
			idle.queues = append(idle.queues, name)
			p.activate(name, runner, 1)
		}
		return idle, nil
	}
}

// Prepare ends once the host has looked at every queue and no reader is open.
func (i *parleyIdle) Prepare(ctx context.Context, _ int) error {
	if err := i.define(ctx, false, i.queues...); err != nil {
		return err
	}
	if err := i.start(); err != nil {
		return err
	}
	return measure.Until(ctx, 100*time.Millisecond, i.asleep)
}

// asleep fails while the host of p has a reader open, or an error.
func (p *parley) asleep() error {
	for _, monitor := range p.host.Monitors() {
		if monitor.Readers > 0 {
			return fmt.Errorf("queue %s has %d readers", monitor.Queue, monitor.Readers)
		}
		if monitor.Errors > 0 {
			return fmt.Errorf("queue %s: %s", monitor.Queue, monitor.LastError)
		}
	}
	return nil
}

func (i *parleyIdle) Run(ctx context.Context) error {
	span := time.NewTimer(idleSpan)
	defer span.Stop()
	select {
	case <-span.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (i *parleyIdle) Verify(context.Context) error { return i.asleep() }
