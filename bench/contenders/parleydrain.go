package contenders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/bench/measure"
)

// parleyDrain is a host whose plugin handles what waits on source.
type parleyDrain struct {
	*parley
	fill    fillFunc
	forward bool
}

func openParleyDrain(ctx context.Context, addr string, guests *Guests, plugin string, fill fillFunc) (measure.Side, error) {
	p, runner, err := openWith(ctx, addr, guests, plugin)
	if err != nil {
		return nil, err
	}
	p.activate(parleySource, runner, parleySlots)
	return &parleyDrain{parley: p, fill: fill, forward: plugin == guestForward}, nil
}

func (d *parleyDrain) Prepare(ctx context.Context, n int) error {
	d.want = n
	return d.fill(ctx, d.parley, n)
}

func (d *parleyDrain) Run(ctx context.Context) error {
	if err := d.start(); err != nil {
		return err
	}
	return measure.Until(ctx, time.Millisecond, d.handled)
}

func (d *parleyDrain) handled() error {
	committed, err := d.settled()
	if err == nil && committed < d.want {
		err = fmt.Errorf("%d of %d messages are handled", committed, d.want)
	}
	return err
}

func (d *parleyDrain) Verify(ctx context.Context) error {
	if err := d.halt(); err != nil {
		return err
	}
	if committed, err := d.settled(); err != nil || committed != d.want {
		return errors.Join(err, fmt.Errorf("%d attempts committed, want %d", committed, d.want))
	}
	sent := 0
	if d.forward {
		sent = d.want
	}
	return errors.Join(d.holds(ctx, parleySource, 0, 0), d.holds(ctx, parleyTarget, sent, 0), d.audit(ctx))
}
