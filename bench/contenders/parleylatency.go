package contenders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/bench/measure"
	"parley/broker"
	"parley/host"
)

// parleyLatency times Send until the host calls the plugin.
type parleyLatency struct {
	*parley
	arrived chan arrival
	samples []time.Duration
}

// doorbell tells when an attempt begins, and then makes it.
type doorbell struct {
	host.Runner
	arrived chan arrival
}

// Run implements host.Runner.
func (d doorbell) Run(ctx context.Context, inv *host.Invocation) host.Result {
	d.arrived <- arrival{at: time.Now()}
	return d.Runner.Run(ctx, inv)
}

func openParleyLatency(guests *Guests) func(context.Context, string) (measure.Side, error) {
	return func(ctx context.Context, addr string) (measure.Side, error) {
		p, runner, err := openWith(ctx, addr, guests, guestNoop)
		if err != nil {
			return nil, err
		}
		l := &parleyLatency{parley: p, arrived: make(chan arrival, 1)}
		p.activate(parleySource, doorbell{runner, l.arrived}, parleySlots)
		return l, nil
	}
}

// Prepare lets one message through, so that the host is up and its reader asleep.
func (l *parleyLatency) Prepare(ctx context.Context, n int) error {
	l.want = n
	if err := l.define(ctx, false, parleySource); err != nil {
		return err
	}
	if err := l.start(); err != nil {
		return err
	}
	_, err := sampleIdle(ctx, 1, l.arrived, func() error { return l.sendOne(ctx) })
	return err
}

func (l *parleyLatency) sendOne(ctx context.Context) error {
	_, err := l.broker.Send(ctx, parleySource, broker.Outgoing{Body: []byte(measure.Body())})
	return err
}

func (l *parleyLatency) Run(ctx context.Context) (err error) {
	l.samples, err = sampleIdle(ctx, l.want, l.arrived, func() error { return l.sendOne(ctx) })
	return err
}

func (l *parleyLatency) Verify(ctx context.Context) error {
	if err := l.halt(); err != nil {
		return err
	}
	committed, err := l.settled()
	if err != nil {
		return err
	}
	if committed != l.want+1 {
		return fmt.Errorf("%d attempts committed, want %d", committed, l.want+1)
	}
	return errors.Join(l.holds(ctx, parleySource, 0, 0), l.audit(ctx))
}

// Samples implements measure.Sampler.
func (l *parleyLatency) Samples() []time.Duration { return l.samples }
